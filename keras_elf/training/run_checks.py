"""What would spoil a run without a word, found before it starts or told after it."""

import warnings

import keras
from keras import ops


def refuse_swapping(model, callbacks):
    """Raise `ValueError` for `keras.callbacks.SwapEMAWeights` beside an optimizer of ours.

    Args:
        model: a compiled `keras.Model`.
        callbacks: `None`, a callback, a list of them or a `CallbackList`.
    """
    optimizer = getattr(model, "optimizer", None)
    if not hasattr(optimizer, "average_pairs"):
        return
    callbacks = getattr(callbacks, "callbacks", callbacks) or ()
    callbacks = callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]
    if any(isinstance(callback, keras.callbacks.SwapEMAWeights) for callback in callbacks):
        raise ValueError(
            "`keras.callbacks.SwapEMAWeights` does not fit this optimizer "
            f"({type(optimizer).__name__}): `evaluate`, validation, `generate`, `get_weights` and "
            "saved files look at its averages already, so a second exchange would show them the "
            "raw weights, and lose these with `swap_on_epoch=True`. Leave the callback out."
        )


class AccumulationWatch:
    """Warns of a run of `fit` with too few batches for one optimizer step.

    With `gradient_accumulation_steps=8` five batches only add to a sum. Where the number of
    batches is known the warning comes before the run, else after it.

    Args:
        model: a compiled `keras.Model`.
        data: what `fit` reads.
        settings: dict of the further arguments of `fit`.
    """

    def __init__(self, model, data, settings):
        self.optimizer = model.optimizer
        self.steps = getattr(self.optimizer, "gradient_accumulation_steps", None) or 1
        self.told = False
        if self.steps == 1:
            return
        self.before = self._counts()
        batches = number_of_batches(data, settings)
        if batches is not None:
            epochs = settings.get("epochs", 1) - settings.get("initial_epoch", 0)
            self._tell(max(epochs, 0) * batches, "will train")

    def after(self):
        """Warn if the run had batches, but no optimizer step, and that is not told yet."""
        if self.steps == 1 or self.told:
            return
        micro, step = self._counts()
        if step == self.before[1]:
            self._tell(micro - self.before[0], "trained")

    def _counts(self):
        optimizer = self.optimizer
        return tuple(
            int(ops.convert_to_numpy(x)) for x in (optimizer._iterations, optimizer.iterations)
        )

    def _tell(self, batches, verb):
        # Earlier runs may have left a part of a sum, to which this one adds.
        waiting = self.before[0] % self.steps
        if not 0 < batches < self.steps - waiting:
            return
        self.told = True
        more = f" ({waiting} were waiting from before)" if waiting else ""
        warnings.warn(
            f"`fit` {verb} nothing: with gradient_accumulation_steps={self.steps} the weights "
            f"change once in {self.steps} batches, and this run has {batches}{more}. Lower "
            "`gradient_accumulation_steps` or `batch_size`, or train for more epochs.",
            UserWarning,
            stacklevel=4,
        )


def number_of_batches(data, settings):
    """Batches in an epoch of `fit`, or `None` where nobody knows before the run."""
    if settings.get("steps_per_epoch") is not None:
        return int(settings["steps_per_epoch"])
    if hasattr(data, "num_batches"):  # keras.utils.PyDataset
        return data.num_batches
    try:
        # Loaders of PyTorch, datasets of TensorFlow that know their length.
        return len(data) if not isinstance(data, dict) else None
    except TypeError:
        return None
