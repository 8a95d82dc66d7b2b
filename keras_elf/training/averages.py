"""Looking at a model through the averaged weights that its optimizer keeps."""

import contextlib
import warnings

from keras import ops


@contextlib.contextmanager
def averaged_weights(model, enabled=True):
    """Within the block the model holds its averaged (EMA) weights, afterwards the raw ones.

    Values are exchanged between variables and averages and exchanged back at the end, also
    after an exception. Nothing happens where no average has moved yet: an optimizer without
    averages, or none of its steps taken. Blocks may be nested. Call it outside a compiled
    step.

    Args:
        model: a compiled `keras.Model`.
        enabled: bool. `False` leaves the raw weights in place. Defaults to `True`.
    """
    _sync(model)
    pairs = _pairs(model) if enabled else []
    if getattr(model, "_averages_in_use", False) or not pairs:
        yield
        return
    exchanged = []
    try:
        model._averages_in_use = True
        for pair in pairs:
            _exchange(*pair)
            exchanged.append(pair)
        yield
    finally:
        _sync(model)
        for pair in exchanged:
            _exchange(*pair)
        model._averages_in_use = False


def adopt_averages(model):
    """Make the averaged weights, where there are some, the model's own for good."""
    _sync(model)
    for variable, average in _pairs(model):
        variable.assign(ops.cast(ops.copy(average.value), variable.dtype))


def _pairs(model):
    optimizer = getattr(model, "optimizer", None)
    if not hasattr(optimizer, "average_pairs") or not optimizer.built:
        return []
    # Until the first step the averages are those of the weights at build time, which a
    # loaded checkpoint may have replaced since.
    if int(ops.convert_to_numpy(optimizer.iterations)) == 0:
        return []
    pairs = optimizer.average_pairs()
    present = {id(v) for v in model.variables}
    if not all(id(variable) in present for variable, _ in pairs):
        warnings.warn(
            "Layers were replaced after training (quantisation, LoRA), so that the averaged "
            "weights no longer fit. The raw weights are used. To keep the averages, save a preset "
            "before such a change and load it again.",
            UserWarning,
            stacklevel=4,
        )
        return []
    return pairs


def _sync(model):
    # While `fit` runs on JAX the newest values live in the step's state, not in the model.
    if hasattr(model, "jax_state_sync"):
        model.jax_state_sync()


def _exchange(variable, average):
    # Both copies first: what may fail for want of memory fails before anything is changed.
    kept, taken = ops.copy(variable.value), ops.copy(average.value)
    variable.assign(ops.cast(taken, variable.dtype))
    average.assign(ops.cast(kept, average.dtype))


def values_in_use(model, use_averages=True):
    """A function from variables to the values that `model` is looked at with, or `None`.

    `None` stands for the variables' own values. Nothing of the model is changed, so that
    several threads may look at it at once.

    Args:
        model: a compiled `keras.Model`.
        use_averages: bool. `False` gives `None`. Defaults to `True`.
    """
    _sync(model)
    pairs = _pairs(model) if use_averages and not getattr(model, "_averages_in_use", False) else []
    if not pairs:
        return None
    averages = {id(variable): average for variable, average in pairs}

    def values(variables):
        return [
            ops.cast(averages[id(v)].value, v.dtype) if id(v) in averages else v.value
            for v in variables
        ]

    return values
