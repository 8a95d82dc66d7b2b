"""Looking at a model through the averaged weights that its optimizer keeps."""

import contextlib

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
    model._averages_in_use = True
    _exchange(pairs)
    try:
        yield
    finally:
        _sync(model)
        _exchange(pairs)
        model._averages_in_use = False


def _pairs(model):
    optimizer = getattr(model, "optimizer", None)
    if not hasattr(optimizer, "average_pairs") or not optimizer.built:
        return []
    # Until the first step the averages are those of the weights at build time, which a
    # loaded checkpoint may have replaced since.
    if int(ops.convert_to_numpy(optimizer.iterations)) == 0:
        return []
    return optimizer.average_pairs()


def _sync(model):
    # While `fit` runs on JAX the newest values live in the step's state, not in the model.
    if hasattr(model, "jax_state_sync"):
        model.jax_state_sync()


def _exchange(pairs):
    for variable, average in pairs:
        kept = ops.copy(variable.value)
        variable.assign(ops.cast(ops.copy(average.value), variable.dtype))
        average.assign(ops.cast(kept, average.dtype))
