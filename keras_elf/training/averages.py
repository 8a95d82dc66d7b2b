"""Looking at a model through the averaged weights that its optimizer keeps.

An average starts as a copy of the weights that an optimizer is built with, and with a decay of
0.9999 it is still 98 % of that copy after 200 steps. Such an average is not the trained model.
So `use_averages=True` means: the averages, once `MINIMUM_TRAINED_SHARE` of them comes from
training steps, and the raw weights before. `use_averages="always"` takes them after one step.
"""

import contextlib
import warnings
import weakref

from keras import ops

from keras_elf import checks
from keras_elf.training.turns import turns

# Half: from here on most of an average is what training made. At a decay of 0.9999 that is after
# 6,931 steps, at 0.99 after 69.
MINIMUM_TRAINED_SHARE = 0.5
# Models that are in `fit`, or about whose averages somebody was told since.
_SILENT = weakref.WeakSet()


def trained_share(model):
    """The share of a model's averages that comes from training steps: 1 - decay**steps.

    Steps count from where the averages last started anew, as after `set_weights`.

    Args:
        model: a compiled `keras.Model`.

    Returns:
        float in [0, 1]. 0 where there are no averages, or none has moved.
    """
    optimizer = getattr(model, "optimizer", None)
    if not hasattr(optimizer, "average_pairs") or not optimizer.average_pairs():
        return 0.0
    synchronise(model)
    return 1.0 - float(ops.convert_to_numpy(optimizer.share_of_start))


def averages_in_use(model, use_averages=True):
    """The averages that take the place of weights.

    Args:
        model: a compiled `keras.Model`.
        use_averages: `True` for averages of which at least `MINIMUM_TRAINED_SHARE` comes from
            training steps, `"always"` for any that have moved, `False` for none. Defaults to
            `True`.

    Returns:
        list of `(variable, average)`, both `keras.Variable`; empty where the raw weights are
        to be used. Outside `fit` a warning says so once a run, where averages are there but
        have hardly moved.

    Raises:
        ValueError: for another `use_averages`.
    """
    checks.choice("use_averages", use_averages, (True, False, "always"))
    share = trained_share(model) if use_averages else 0.0
    if not share:
        return []
    if use_averages != "always" and share < MINIMUM_TRAINED_SHARE:
        _tell_of_short_run(model, share)
        return []
    pairs = model.optimizer.average_pairs()
    present = {id(v) for v in model.variables}
    if not all(id(variable) in present for variable, _ in pairs):
        warnings.warn(
            "Layers were replaced after training (quantisation, LoRA), so that the averaged "
            "weights no longer fit. The raw weights are used. To keep the averages, save a preset "
            "before such a change and load it again.",
            UserWarning,
            stacklevel=5,
        )
        return []
    return pairs


@contextlib.contextmanager
def told_after(model):
    """Within the block nobody is told that averages have hardly moved; after it, once."""
    _SILENT.add(model)
    try:
        yield
    finally:
        _SILENT.discard(model)


@contextlib.contextmanager
def averaged_weights(model, use_averages=True):
    """Within the block the model holds its averaged (EMA) weights, afterwards the raw ones.

    Values are exchanged between variables and averages and exchanged back at the end, also
    after an exception. Nothing happens where no average is in use (`averages_in_use`): an
    optimizer without averages, or too few of its steps taken. Blocks may be nested. Call it
    outside a compiled step. Other threads that write with the model or evaluate it wait.

    Args:
        model: a compiled `keras.Model`.
        use_averages: as in `averages_in_use`. Defaults to `True`.
    """
    with turns(model).exchanging():
        synchronise(model)
        pairs = [] if within_averages(model) else averages_in_use(model, use_averages)
        if not pairs:
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
            synchronise(model)
            for pair in exchanged:
                _exchange(*pair)
            model._averages_in_use = False


def averaged_values(model, use_averages=True):
    """A function from variables to the values that a model is looked at with, or `None`.

    `None` stands for the variables' own values. Unlike `averaged_weights` it changes nothing of
    the model, so that several threads may look at it at once; see `keras_elf.training.turns`.

    Args:
        model: a compiled `keras.Model`.
        use_averages: as in `averages_in_use`. Defaults to `True`.
    """
    synchronise(model)
    pairs = [] if within_averages(model) else averages_in_use(model, use_averages)
    if not pairs:
        return None
    averages = {id(variable): average for variable, average in pairs}

    def values(variables):
        return [ops.cast(averages.get(id(v), v).value, v.dtype) for v in variables]

    return values


def within_averages(model):
    """Whether a block of `averaged_weights` is open, so that variables hold the averages."""
    return getattr(model, "_averages_in_use", False)


def adopt_averages(model):
    """Make the averaged weights, where they are in use, the model's own for good.

    Averages start anew at the weights that are then there.
    """
    synchronise(model)
    for variable, average in averages_in_use(model):
        variable.assign(ops.cast(ops.copy(average.value), variable.dtype))
    restart_averages(model)


def restart_averages(model):
    """Have the averages of a model, where its optimizer keeps some, start at its weights."""
    optimizer = getattr(model, "optimizer", None)
    if hasattr(optimizer, "average_pairs") and optimizer.average_pairs():
        optimizer.reset_average()


def synchronise(model):
    """Bring the newest values into the variables: on JAX `fit` keeps them in its step's state."""
    if hasattr(model, "jax_state_sync"):
        model.jax_state_sync()


def _tell_of_short_run(model, share):
    if model in _SILENT:
        return
    _SILENT.add(model)
    decay = model.optimizer.ema_momentum
    warnings.warn(
        f"The raw weights are used, not the averages: with `ema_momentum={decay}` only "
        f"{100 * share:.2g} % of the averages come from training so far, the rest is still "
        "the start. Train longer, or compile with a lower `ema_momentum` (0.99 suits some "
        'hundred steps). `use_averages="always"` takes them all the same.',
        UserWarning,
        stacklevel=5,
    )


def _exchange(variable, average):
    # Both copies first: what may fail for want of memory fails before anything is changed.
    kept, taken = ops.copy(variable.value), ops.copy(average.value)
    variable.assign(ops.cast(taken, variable.dtype))
    average.assign(ops.cast(kept, average.dtype))
