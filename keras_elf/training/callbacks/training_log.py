"""What happened at which step: CSV for people and scripts, event files for TensorBoard."""

import pathlib
import time

import keras
from keras import ops

from keras_elf import checks
from keras_elf.training.callbacks.fit_callback import FitCallback, is_due, synchronise
from keras_elf.training.callbacks.reconstruction_accuracy import ACCURACY, ReconstructionAccuracy
from keras_elf.training.callbacks.records import RecordFile


def columns(losses, more=()):
    """Names of the columns, for the names of what a step reports and of what an epoch adds."""
    return (
        *("step", "epoch", "batch", *losses, "gradient_norm", "learning_rate"),
        *("tokens_per_second", "seconds", *(f"val_{name}" for name in losses), *more),
    )


@keras.saving.register_keras_serializable(package="keras_elf")
class TrainingLog(FitCallback):
    """Logs what the objective reports, gradient norm, learning rate and tokens a second.

    Losses are those of the very step, not the means over the epoch that Keras reports. The
    columns are `step` (optimizer steps), `epoch` (from 0), `batch` (batches of the epoch that
    are done), `loss` and each of the objective's `report_names`, such as `denoise_loss` and
    `decode_loss` (empty where a batch had no row to measure it), `gradient_norm` (global,
    before the clip; for `keras_elf.optimizers`), `learning_rate` (of that step),
    `tokens_per_second` (positions of the batches over the time since the last line, what other
    callbacks did in it included), `seconds` (since `fit` began), and what the validation
    reported, with `val_` before the name, in lines at the end of epochs. So is
    `reconstruction_accuracy`, where `ReconstructionAccuracy` stands before this callback.

    A run that `ResumableCheckpoint` resumes goes on in the same file: lines of steps after the
    checkpoint, which it trains again, are taken out.

    Args:
        path: path of the CSV file, or `None` for none.
        every_n_steps: int. A line each so many optimizer steps, and at the end of each epoch.
            To read the losses, the host waits for the device. Defaults to `10`.
        tensorboard: path of a directory for TensorBoard, or `None` for none.

    Raises:
        ImportError: with `tensorboard`, where tensorboardX is missing; the extra is named.
        ValueError: for arguments out of range; in `fit`, for a file that holds other things or
            the log of another run.
    """

    def __init__(self, path=None, every_n_steps=10, tensorboard=None):
        super().__init__()
        if path is None and tensorboard is None:
            raise ValueError("One of `path` and `tensorboard` must be given. Received: None, None")
        self.path = _path("path", path)
        self.tensorboard = _path("tensorboard", tensorboard)
        if self.path is not None and self.path.is_dir():
            raise ValueError(f"`path` must be a file. Received the directory {path}")
        if self.tensorboard is not None and self.tensorboard.is_file():
            raise ValueError(f"`tensorboard` must be a directory. Received the file {tensorboard}")
        if self.tensorboard is not None:
            _writer()
        self.every_n_steps = checks.integer("every_n_steps", every_n_steps, minimum=1)
        self._table = self._events = None

    def before_fit(self, run):
        run.require(self, "step_report")
        self._schedule = schedule_of(run.model.optimizer)
        self._of_epochs = (ACCURACY,) if run.find(ReconstructionAccuracy) is not None else ()

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        step = self.clock.step
        self._losses = ("loss", *self.model.objective.report_names)
        if self.path is not None:
            self._table = RecordFile(self.path, columns(self._losses, self._of_epochs))
            self._table.open(step, self.clock.resuming, "TrainingLog")
        if self.tensorboard is not None:
            # What older files say of later steps, TensorBoard forgets.
            self._events = _writer()(str(self.tensorboard), purge_step=step + 1)
        self._began = time.monotonic()
        self._logged = step

    def on_epoch_begin(self, epoch, logs=None):
        self._mark()

    def after_step(self, before, step):
        if is_due(self.every_n_steps, before, step):
            self._log({})

    def on_epoch_end(self, epoch, logs=None):
        self._step = self.clock.step
        names = [*(f"val_{name}" for name in self._losses), *self._of_epochs]
        validation = {name: (logs or {}).get(name) for name in names}
        validation = {name: value for name, value in validation.items() if value is not None}
        if self._logged != self.clock.step or validation:
            self._log(validation)

    def after_fit(self, run):
        for target in (self._table, self._events):
            if target is not None:
                target.close()
        self._table = self._events = None

    def get_config(self):
        return {
            "path": None if self.path is None else str(self.path),
            "every_n_steps": self.every_n_steps,
            "tensorboard": None if self.tensorboard is None else str(self.tensorboard),
        }

    def _log(self, more):
        clock, optimizer = self.clock, self.model.optimizer
        synchronise(self.model)
        report = self.model.step_report.read()
        values = {name: report[name] for name in self._losses if name in report}
        if hasattr(optimizer, "gradient_norm"):
            values["gradient_norm"] = float(ops.convert_to_numpy(optimizer.gradient_norm))
        # Keras's own optimizers read their schedules in batches.
        steps = clock.step if hasattr(optimizer, "gradient_norm") else clock.micro_step
        rate = (
            optimizer.learning_rate if self._schedule is None else self._schedule(max(steps - 1, 0))
        )
        values["learning_rate"] = float(ops.convert_to_numpy(rate))
        now = time.monotonic()
        batches = clock.micro_step - self._marked_step
        if batches and now > self._marked_time:
            values["tokens_per_second"] = report["tokens"] * batches / (now - self._marked_time)
        values["seconds"] = now - self._began
        values |= more
        self._logged = clock.step
        self._mark()
        if self._table is not None:
            place = {"step": clock.step, "epoch": clock.epoch, "batch": clock.batch}
            self._table.append(place | values)
        if self._events is not None:
            for name, value in values.items():
                self._events.add_scalar(name, value, clock.step)
            self._events.flush()

    def _mark(self):
        self._marked_step, self._marked_time = self.clock.micro_step, time.monotonic()


def schedule_of(optimizer):
    """The optimizer's learning-rate schedule, or `None`: its own rate is that of the next step."""
    try:
        config = optimizer.get_config()["learning_rate"]
    except NotImplementedError:  # A schedule without a `get_config`.
        return None
    if not isinstance(config, dict):
        return None
    return keras.optimizers.schedules.deserialize(config)


def _writer():
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        raise ImportError(
            "Event files for TensorBoard are written by tensorboardX: "
            '`pip install "keras-elf[tensorboard]"`.'
        ) from None
    return SummaryWriter


def _path(name, value):
    if value is None:
        return None
    if not isinstance(value, (str, pathlib.Path)) or not str(value):
        raise ValueError(f"`{name}` must be a path. Received: {value!r}")
    return pathlib.Path(value)
