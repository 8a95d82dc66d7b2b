"""Ends a run at the first value that is not finite, and says where it came from."""

import json
import pathlib

import keras
import numpy as np
from keras import ops

from keras_elf import checks
from keras_elf.atomic_file import replaced
from keras_elf.training.callbacks import state
from keras_elf.training.callbacks.fit_callback import FitCallback, is_due, synchronise
from keras_elf.training.callbacks.resumable_checkpoint import ResumableCheckpoint

LISTED = 5


@keras.saving.register_keras_serializable(package="keras_elf")
class StopOnNaN(FitCallback):
    """Stops training once a loss or the gradient norm is NaN or infinite, with a report.

    The device itself notes the first step at which each loss and the gradient norm (for
    `keras_elf.optimizers`) was not finite; looking makes the host wait for the device, so it
    happens each `every_n_steps` steps and at the end of each epoch. The report names what
    failed first, at which step and batch, and which weights and optimizer variables hold
    values that are not finite by the time of the look. `ResumableCheckpoint` saves no such
    values, so that its newest checkpoint is from before.

    Args:
        every_n_steps: int. Optimizer steps between looks. Defaults to `25`; with `1` the
            weights are named as they were right after the failure.
        directory: path of a directory that gets `non-finite-step-N.json`, the report, and
            `non-finite-step-N.npz`, the batch, where the data's positions can be set (see
            `ResumableCheckpoint`) and Keras does not shuffle them. Defaults to the directory
            of the run's `ResumableCheckpoint`, or none.
        error: bool. Whether to raise; else `fit` ends as if training were done. Defaults to
            `True`.

    Raises:
        FloatingPointError: in `fit`, with a message of one line, where `error` is set.
        ValueError: for arguments out of range.
    """

    def __init__(self, every_n_steps=25, directory=None, error=True):
        super().__init__()
        self.every_n_steps = checks.integer("every_n_steps", every_n_steps, minimum=1)
        if directory is not None:
            if not isinstance(directory, (str, pathlib.Path)) or not str(directory):
                raise ValueError(f"`directory` must be a path. Received: {directory!r}")
            if pathlib.Path(directory).is_file():
                raise ValueError(f"`directory` must be a directory. Received the file {directory}")
        self.directory = directory
        self.error = checks.choice("error", error, (True, False))
        self.report = None

    def before_fit(self, run):
        run.require(self, "step_report")
        self._checkpoint = run.find(ResumableCheckpoint)
        self.report = None

    def after_step(self, before, step):
        if is_due(self.every_n_steps, before, step):
            self._look()

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, logs)
        self._look()

    def get_config(self):
        directory = None if self.directory is None else str(self.directory)
        return {"every_n_steps": self.every_n_steps, "directory": directory, "error": self.error}

    def _look(self):
        if self.report is not None:
            return
        synchronise(self.model)
        failed = self._failed()
        if not failed:
            return
        self.report = self._describe(failed)
        message = self._message()
        self._write()
        if self.error:
            raise FloatingPointError(message)
        print(message, flush=True)
        self.run.stop(skip_validation=True)

    def _failed(self):
        """Dict from name to the batch, counted as `clock.micro_step`, that it failed at first."""
        report, clock = self.model.step_report.read(), self.clock
        offset = clock.micro_step - report["steps"]
        failed = {name: n + offset for name, n in report["first_nonfinite"].items() if n}
        first = getattr(self.model.optimizer, "first_nonfinite", None)
        first = 0 if first is None else int(ops.convert_to_numpy(first))
        if first:
            failed["gradient_norm"] = first * clock.accumulation
        # A loss that fails takes its gradient with it, and the sum its summand.
        order = (*self.model.objective.report_names, "loss", "gradient_norm")
        return {n: failed[n] for n in sorted(failed, key=lambda n: (failed[n], order.index(n)))}

    def _describe(self, failed):
        clock, values = self.clock, self.model.step_report.read()
        first = next(iter(failed))
        bad = {n.split("/", 1)[0]: [] for n in ("model/", "optimizer/")}
        for name in state.nonfinite(state.collect(self.model, only=tuple(bad))):
            section, path = name.split("/", 1)
            bad[section].append(path.split(":", 1)[1])
        # Batches of the epoch count from 0; `clock.batch` of them are done.
        batch = clock.batch - (clock.micro_step - failed[first]) - 1
        return {
            "first": [name for name in failed if failed[name] == failed[first]],
            "step": -(-failed[first] // clock.accumulation),
            "epoch": clock.epoch,
            "batch": batch,
            "first_steps": {n: -(-at // clock.accumulation) for n, at in failed.items()},
            "found_at_step": clock.step,
            "weights": bad["model"],
            "num_weights": len(self.model.variables),
            "optimizer_variables": bad["optimizer"],
            "num_optimizer_variables": len(self.model.optimizer.variables),
            "last_losses": {
                name: repr(values[name])
                for name in ("loss", *self.model.objective.report_names)
                if name in values
            },
        }

    def _message(self):
        report, checkpoint = self.report, self._checkpoint
        weights = ", ".join(report["weights"][:LISTED])
        weights += ", ..." if len(report["weights"]) > LISTED else ""
        message = (
            f"Training stopped: not finite at step {report['step']} (epoch {report['epoch']}, "
            f"batch {report['batch']}), first {' and '.join(report['first'])}. By step "
            f"{report['found_at_step']}, {len(report['weights'])} of {report['num_weights']} "
            f"weights{f' ({weights})' if weights else ''} and "
            f"{len(report['optimizer_variables'])} of {report['num_optimizer_variables']} "
            "optimizer variables are not finite."
        )
        if self._directory() is not None:
            message += f" Report and batch: {self._path('json')}."
        if checkpoint is not None:
            saved = checkpoint.checkpoints()
            message += f" Last good checkpoint: {saved[-1] if saved else 'none'}."
        return message

    def _write(self):
        if self._directory() is None:
            return
        self._directory().mkdir(parents=True, exist_ok=True)
        with replaced(self._path("json")) as file:
            json.dump(self.report, file, indent=1)
        if self.clock.data is not None and self.report["batch"] >= 0:
            batch = self.clock.data.batch_of(self.clock.data_epoch, self.report["batch"])
            with replaced(self._path("npz"), "wb") as file:
                np.savez(file, **{name: np.asarray(array) for name, array in batch.items()})

    def _directory(self):
        if self.directory is not None:
            return pathlib.Path(self.directory)
        return None if self._checkpoint is None else self._checkpoint.directory

    def _path(self, suffix):
        return self._directory() / f"non-finite-step-{self.report['step']}.{suffix}"
