"""Where a run of `fit` stands: one clock that all its callbacks share."""

import contextlib
import warnings

import keras
from keras import ops


class RunClock(keras.callbacks.Callback):
    """Epoch, batch and step of a run, as they are between two training steps.

    `FitRun` puts it before all other callbacks. It listens to the beginnings of steps: a
    callback that listens to their ends has Keras fetch the losses after each step, and the
    device waits for the host.

    Args:
        run: `FitRun`.

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

    def __init__(self, run):
        super().__init__()
        self.run = run
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

    def follow(self, data, initial_epoch):
        """Set the place of `PositionedBatches` from here on."""
        self.data = data
        epoch, self._skip = data.start
        self.epoch, self.batch = initial_epoch, self._skip
        self._first_epoch_of_data = epoch - initial_epoch

    def resume(self, position):
        """Start at a `position` of another run."""
        self.resuming = True
        self.epoch = position["epoch"]
        self.batch = self._skip = position["batch"]
        self._first_epoch_of_data = position["first_epoch_of_data"]

    def read_step(self):
        """Learn from the optimizer how many steps there were."""
        # `iterations` counts what was accumulated as one; the variable counts batches.
        count = next(v for v in self.model.optimizer.variables if v.name == "iteration")
        self.micro_step = int(ops.convert_to_numpy(count))
        return self.micro_step

    def on_train_begin(self, logs=None):
        self.read_step()

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch, self.complete = epoch, False
        self._skipped, self._skip = self._skip, 0
        self.batch = self._skipped
        self._before = self.read_step()
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

    def on_epoch_end(self, epoch, logs=None):
        self._late_start.close()
        self._reached(self.read_step() - self._before)
        if self.length is None:
            self.complete = not self.model.stop_training
        else:
            self.complete = self.batch >= self.length

    def after_fit(self):
        """Called by `FitRun` when it ends, also by an exception."""
        self._late_start.close()
        if self.data is not None:
            place = self.position
            self.data.leave(place["epoch"] + self._first_epoch_of_data, place["batch"])

    def _reached(self, batches):
        self.batch = self._skipped + batches
        self.micro_step = self._before + batches
