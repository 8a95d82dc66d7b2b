"""One call of `fit` with callbacks that know it."""

import contextlib
import functools

import keras

from keras_elf.training.callbacks.fit_callback import FitCallback
from keras_elf.training.clock import RunClock
from keras_elf.training.positioned import PositionedBatches, positionable
from keras_elf.training.state_guard import state_given_back


class FitRun:
    """A call of `fit`: what its callbacks may read and change.

    Models make one in their `fit`, and go through it:

    ```python
    def fit(self, x, callbacks=None, **settings):
        return FitRun(self, x, callbacks, settings).fit()
    ```

    and ask `running(callbacks)` in their `evaluate`, so that validation has its hook too.

    Args:
        model: compiled `keras.Model` with the mixin `keras_elf.training.state_guard.KeptState`.
        data: what `keras.Model.fit` takes.
        callbacks: `None`, a callback or a list of them.
        settings: dict of further arguments of `keras.Model.fit`.

    Attributes:
        model: the model.
        data: what Keras will train on; callbacks may replace it in `before_fit`.
        settings: dict of the arguments of `keras.Model.fit`; callbacks may change it in
            `before_fit`.
        callbacks: list of all callbacks.
        clock: `RunClock`: epoch, batch and step.
    """

    def __init__(self, model, data, callbacks, settings):
        self.model, self.data, self.settings = model, data, settings
        self.clock = RunClock(self)
        if isinstance(callbacks, keras.callbacks.CallbackList):
            self.callbacks, self._listed = list(callbacks.callbacks), callbacks
        else:
            single = callbacks is not None and not isinstance(callbacks, (list, tuple))
            self.callbacks = [callbacks] if single else list(callbacks or ())
            self._listed = None
        self._skips_validation = False

    def find(self, kind):
        """The first callback of a class, or `None`."""
        return next((c for c in self.callbacks if isinstance(c, kind)), None)

    def stop(self, skip_validation=False):
        """End `fit` after the step that is running.

        Args:
            skip_validation: bool. Whether the validation of the epoch is left out. Defaults to
                `False`.
        """
        self._skips_validation |= skip_validation
        self.model.stop_training = True

    def require(self, callback, attribute):
        """Raise `ValueError` if the model lacks what a callback needs of an `ELFGenerator`."""
        if not hasattr(self.model, attribute):
            raise ValueError(
                f"`{type(callback).__name__}` needs a model with `{attribute}`, as an "
                f"ELFGenerator has it. Received: {type(self.model).__name__}"
            )

    def resume(self, position):
        """Have the run start at a `position` of a clock; for `before_fit`."""
        self.settings["initial_epoch"] = position["epoch"]
        self.clock.resume(position)

    def fit(self, train=None):
        """Call the hooks and Keras's `fit`; returns its `History`.

        Args:
            train: function `(data, callbacks, **settings) -> History`, called when the hooks
                are through. Defaults to Keras's own `fit` of the model.
        """
        train = functools.partial(keras.Model.fit, self.model) if train is None else train
        if self._listed is not None:
            # Its order is settled. Callbacks that need a run say so.
            with state_given_back(self.model):
                return train(self.data, callbacks=self._listed, **self.settings)
        hooks = [c for c in self.callbacks if isinstance(c, FitCallback)]
        with contextlib.ExitStack() as stack:
            stack.callback(self.clock.after_fit)
            self.clock.set_model(self.model)
            self.callbacks.insert(0, self.clock)
            self._set_position(hooks)
            for hook in hooks:
                stack.callback(_leave, hook, self)
                hook.run = self
                hook.before_fit(self)
            stack.enter_context(state_given_back(self.model))
            return train(self.data, callbacks=self.callbacks, **self.settings)

    def begin_validation(self):
        """Call the hooks; returns whether the validation is to take place."""
        if not self._skips_validation:
            for callback in self.callbacks:
                if isinstance(callback, FitCallback):
                    callback.before_validation(self)
        return not self._skips_validation

    def _set_position(self, hooks):
        needing = next((hook for hook in hooks if hook.needs_position), None)
        if needing is not None:
            _check_position(type(needing).__name__, self.data, self.settings)
        elif (
            not positionable(self.data)
            or self.data.workers > 1
            or self.settings.get("shuffle")
            or self.settings.get("steps_per_epoch") is not None
        ):
            return
        self.data = PositionedBatches(self.data)
        self.settings["shuffle"] = False
        self.clock.follow(self.data, self.settings.get("initial_epoch", 0))


def running(callbacks):
    """The `FitRun` whose callbacks Keras hands to `evaluate`, or `None` outside of `fit`."""
    for callback in getattr(callbacks, "callbacks", ()):
        if isinstance(callback, RunClock):
            return callback.run
    return None


def _leave(hook, run):
    try:
        hook.after_fit(run)
    finally:
        hook.run = None


def _check_position(name, x, settings):
    if not positionable(x):
        raise ValueError(
            f"`{name}` needs data whose position it can set: text, token ids or arrays in memory, "
            "a `keras_elf.data.ResumableDataset`, or a `keras.utils.PyDataset` with `position` "
            f"and `skip_to(epoch, batch)`. Received: {type(x).__name__}"
        )
    if settings.get("steps_per_epoch") is not None:
        raise ValueError(
            f"`steps_per_epoch` must be None with `{name}`: an epoch is one pass over the data. "
            f"Received: {settings['steps_per_epoch']}"
        )
