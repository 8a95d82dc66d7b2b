"""Where a run of `fit` stands: one clock that all callbacks of this package share."""

import contextlib
import warnings

import keras
from keras import ops

from keras_elf.callbacks.positioned import PositionedBatches, positionable


class RunClock(keras.callbacks.Callback):
    """Epoch, batch and step of a run, as they are between two training steps.

    `ELFGenerator.fit` puts it before all other callbacks. It listens to the beginnings of
    steps: a callback that listens to their ends has Keras fetch the losses after each step,
    and the device waits for the host.

    Attributes:
        epoch: int. Number of the epoch, from 0.
        batch: int. Batches of this epoch that have been trained on.
        micro_step: int. Batches that the optimizer has seen in all.
        step: int. Optimizer steps in all: batches over `gradient_accumulation_steps`.
        length: int or `None`. Batches in an epoch, where that is known.
        complete: bool. Whether the epoch has come to its end.
        data: `PositionedBatches` or `None`.
        resuming: bool. Whether the run continues one that was saved.
    """

    def __init__(self):
        super().__init__()
        self.epoch = self.batch = self.micro_step = 0
        self.length = self.data = None
        self.complete = self.resuming = False
        self._skip = 0
        self._first_epoch_of_data = None
        self._late_start = contextlib.ExitStack()

    @property
    def accumulation(self):
        return getattr(self.model.optimizer, "gradient_accumulation_steps", None) or 1

    @property
    def step(self):
        return self.micro_step // self.accumulation

    @property
    def data_epoch(self):
        """The number by which the data know the present epoch."""
        return self._first_epoch_of_data + self.epoch

    @property
    def position(self):
        """Where to go on: dict of `epoch`, `batch`, `first_epoch_of_data`."""
        epoch, batch = (self.epoch + 1, 0) if self.complete else (self.epoch, self.batch)
        return {
            "epoch": epoch,
            "batch": batch,
            "first_epoch_of_data": self._first_epoch_of_data,
        }

    def wrap(self, x, settings):
        """`x` as data of which every position can be reached."""
        self.data = PositionedBatches(x)
        epoch, self._skip = self.data.start
        self._first_epoch_of_data = epoch - settings.get("initial_epoch", 0)
        settings["shuffle"] = False
        return self.data

    def resume(self, position, settings):
        """Have the run start at a `position` of another one."""
        self.resuming = True
        self.epoch = settings["initial_epoch"] = position["epoch"]
        self._skip = position["batch"]
        self._first_epoch_of_data = position["first_epoch_of_data"]

    def on_train_begin(self, logs=None):
        self.micro_step = self._iterations()

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch, self.complete = epoch, False
        self._skipped, self._skip = self._skip, 0
        self.batch = self._skipped
        self.micro_step = self._before = self._iterations()
        if self.data is not None:
            self.length = self.data.length
            self.data.start_epoch(self.data_epoch, self._skipped)
        if self._skipped:
            # The data are meant to run out early.
            self._late_start.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", message="Your input ran out of data")

    def on_train_batch_begin(self, batch, logs=None):
        if self._skipped and self.length is not None and self._skipped + batch >= self.length:
            # Keras announces a batch before it finds that there is none, and TensorFlow has
            # moved the seed generators on by then. This is how it hears of it in time.
            raise StopIteration
        self._reached(batch)

    def after_fit(self):
        """Called by `ELFGenerator.fit` when it ends, also by an exception."""
        self._late_start.close()

    def on_epoch_end(self, epoch, logs=None):
        self._late_start.close()
        self._reached(self._iterations() - self._before)
        if self.length is None:
            self.complete = not self.model.stop_training
        else:
            self.complete = self.batch >= self.length
        if self.complete and self.data is not None:
            self.data.finish_epoch(self.data_epoch)

    def _reached(self, batches):
        self.batch = self._skipped + batches
        self.micro_step = self._before + batches

    def _iterations(self):
        return int(ops.convert_to_numpy(self.model.optimizer._iterations))


class StepCallback(keras.callbacks.Callback):
    """A callback of `ELFGenerator.fit` that acts between two steps, now and then.

    Subclasses define `after_step(before, step)`, called after every batch with the number of
    optimizer steps at the last call and now; it must not touch the device unless it is due.
    """

    clock = None
    needs_position = False

    def before_fit(self, model, x, callbacks, settings):
        """Called by `ELFGenerator.fit` with its data and settings; returns the data."""
        clock = next((c for c in callbacks if isinstance(c, RunClock)), None)
        if clock is None:
            clock = RunClock()
            callbacks.insert(0, clock)
        clock.set_model(model)
        self.clock = clock
        if clock.data is None:
            if self.needs_position:
                _check_positions(self, x, settings)
                return clock.wrap(x, settings)
            if positionable(x) and x.workers <= 1 and not settings.get("shuffle"):
                return clock.wrap(x, settings)
        return x

    def after_fit(self):
        """Called by `ELFGenerator.fit` when it ends, also by an exception."""
        self.clock = None

    def on_train_begin(self, logs=None):
        if self.clock is None:
            raise ValueError(
                f"`{type(self).__name__}` works in `ELFGenerator.fit` alone, which must get its "
                f"callbacks as a list. Received a model of type {type(self.model).__name__}"
            )
        self._step = self.clock.step

    def on_train_batch_begin(self, batch, logs=None):
        self._arrive()

    def on_epoch_end(self, epoch, logs=None):
        self._arrive()

    def _arrive(self):
        before, self._step = self._step, self.clock.step
        if self._step > before:
            self.after_step(before, self._step)

    def after_step(self, before, step):
        """See the class."""


def is_due(every, before, step):
    """Whether a multiple of `every` lies after `before` and not after `step`."""
    return every is not None and step // every > before // every


def synchronise(model):
    """Have the model's variables hold the newest values, also in the middle of `fit` on JAX."""
    if hasattr(model, "jax_state_sync"):
        model.jax_state_sync()


def _check_positions(callback, x, settings):
    if not positionable(x):
        raise ValueError(
            f"`{type(callback).__name__}` needs data whose position it can set: text, token ids "
            "or arrays in memory, `keras_elf.data.TokenBatches`, or a `keras.utils.PyDataset` "
            f"with `position` and `skip_to(epoch, batch)`. Received: {type(x).__name__}"
        )
    if settings.get("steps_per_epoch") is not None:
        raise ValueError(
            f"`steps_per_epoch` must be None with `{type(callback).__name__}`: an epoch is one "
            f"pass over the data. Received: {settings['steps_per_epoch']}"
        )
