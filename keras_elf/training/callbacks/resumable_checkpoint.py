"""Checkpoints from which a run goes on as if it had never stopped."""

import copy
import pathlib
import time
import warnings

import keras

from keras_elf import checks
from keras_elf.training.callbacks import automatic_settings, state
from keras_elf.training.callbacks.checkpoint_directory import CheckpointDirectory
from keras_elf.training.callbacks.fit_callback import FitCallback, is_due
from keras_elf.version import __version__


@keras.saving.register_keras_serializable(package="keras_elf")
class ResumableCheckpoint(FitCallback):
    """Saves a run so that it can go on, in another process, as if it had never stopped.

    A checkpoint holds the weights, the optimizer with its averages, the state of every seed
    generator, the running means of the epoch, the place in the data, and the history so far.
    On the same machine, backend and versions the losses after a resume are those of the
    uninterrupted run to the last bit, and so is the `History` that `fit` returns.

    Each checkpoint is one file, written beside its place, flushed to the disk and then moved:
    a process that is killed at any moment leaves the last good one whole, and loses what came
    after it. Nothing is ever saved that holds a NaN or an infinity.

    Data must be such that their position can be set: text, ids or arrays in memory, or what
    `keras_elf.data.ResumableDataset` describes. Keras's own shuffling of a dataset's batches,
    which no seed of the dataset governs, is switched off, and so are its `workers`: they run
    ahead into the next epoch. Not saved: the state of other callbacks.

    Example:

    ```python
    checkpoint = keras_elf.callbacks.ResumableCheckpoint("run", every_n_steps=500, resume=True)
    elf.fit(texts, epochs=5, callbacks=[checkpoint])  # the same lines start it and resume it
    ```

    Args:
        directory: path. Made if it is not there. One run at a time may use it.
        every_n_steps: int or `None`. Save after each so many optimizer steps.
        every_seconds: float or `None`. Save when so many seconds have passed since the last
            time.
        every_epoch: bool. Save at the end of each epoch. Defaults to `True`.
        keep: int. How many of the newest checkpoints stay. Defaults to `3`.
        resume: bool. Go on from the newest checkpoint, where there is one. Defaults to
            `False`: a directory that holds checkpoints is refused.
        strict: bool. Refuse a checkpoint whose run had other settings (of objective,
            optimizer, model, data), though its arrays fit. Defaults to `True`.

    Raises:
        ValueError: for arguments out of range, and, before anything is changed, where a
            checkpoint is damaged, of a newer version, or of another model, optimizer or data.
    """

    needs_position = True

    def __init__(
        self,
        directory,
        *,
        every_n_steps=None,
        every_seconds=None,
        every_epoch=True,
        keep=3,
        resume=False,
        strict=True,
    ):
        super().__init__()
        if not isinstance(directory, (str, pathlib.Path)) or not str(directory):
            raise ValueError(f"`directory` must be a path. Received: {directory!r}")
        self.directory = pathlib.Path(directory)
        if self.directory.exists() and not self.directory.is_dir():
            raise ValueError(f"`directory` must be a directory. Received the file {directory}")
        if every_n_steps is not None:
            every_n_steps = checks.integer("every_n_steps", every_n_steps, minimum=1)
        if every_seconds is not None:
            every_seconds = checks.number("every_seconds", every_seconds, minimum=0)
        self.every_n_steps, self.every_seconds = every_n_steps, every_seconds
        for name, value in (("every_epoch", every_epoch), ("resume", resume), ("strict", strict)):
            setattr(self, name, checks.choice(name, value, (True, False)))
        if every_n_steps is None and every_seconds is None and not every_epoch:
            raise ValueError(
                "One of `every_n_steps`, `every_seconds` and `every_epoch` must be set, or "
                "nothing would ever be saved. Received: None, None, False"
            )
        self.keep = checks.integer("keep", keep, minimum=1)
        self.last_saved = None
        self._requested = False
        self._restored = self._restored_model = None
        self._files, self._own = CheckpointDirectory(self.directory), False

    def checkpoints(self):
        """Paths of the checkpoints there are, oldest first."""
        return self._files.checkpoints()

    def restore(self, model, path=None):
        """Bring a compiled model to where a checkpoint was saved; `fit` then goes on there.

        Args:
            model: `ELFGenerator`, built and compiled as in the run that was saved.
            path: path of a checkpoint. Defaults to the newest.

        Returns:
            dict of `step`, `epoch` and `batch`, from where `fit` will go on.

        Raises:
            ValueError: if there is none, it is damaged, or it does not fit; the model is then
                as it was.
        """
        if getattr(model, "optimizer", None) is None:
            raise ValueError("`model` must be compiled. Received a model without an optimizer")
        path, manifest, arrays = self._files.read(path)
        if not model.optimizer.built:
            model.optimizer.build(model.trainable_variables)
        self._compare_settings(manifest, model, path, chosen=self.run is not None)
        state.check(model, arrays, path)
        _warn_of_other_software(manifest, path)
        state.assign(model, arrays)
        self._restored, self._restored_model = (manifest, arrays), model
        position = manifest["position"]
        return {k: v for k, v in {**position, **manifest}.items() if k in _PLACE}

    def request(self):
        """Save when training has stopped, wherever it stops, or at the end of the epoch."""
        self._requested = True

    def save_if_requested(self):
        """Do what `request` asked for, if that has not been done."""
        if self._requested:
            self._requested = False
            self.save()

    def before_fit(self, run):
        model = run.model
        self._files.acquire()
        self._requested = False
        self._data = self.clock.data.fingerprint()
        if self._restored is None and self.resume and self.checkpoints():
            self.restore(model)
        if self._restored is None:
            self._settings = state.settings(model)
            self._history = []
            self._refuse_foreign_checkpoints()
            return
        if self._restored_model is not model:
            raise ValueError("The checkpoint was restored into another model than this one.")
        manifest, _ = self._restored
        if getattr(model, "automatic_recipe", False):
            self._compare_settings(manifest, model, self.directory, chosen=True)
            automatic_settings.begin_where_the_run_began(model.optimizer, manifest["settings"])
        self._settings = state.settings(model)
        self._compare(manifest["data"], self._data, self.directory, "data")
        run.resume(manifest["position"])
        self._history = copy.deepcopy(manifest["history"])
        self._own = True

    def after_fit(self, run):
        self._restored = self._restored_model = None
        self._files.release()

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        self._saved_at = None
        self._saved_time = time.monotonic()
        self._before_validation = self._generators = None

    def on_epoch_begin(self, epoch, logs=None):
        self._before_validation, self._late_start = None, False
        if self._restored is not None:
            self._recall_history()
            # Keras has just reset the running means of the epoch.
            if self.clock.batch:
                state.assign(self.model, self._restored[1], only=("metrics",))
                # The loader has drawn from them by the time that the first batch comes.
                self._generators = self._restored[1]
            else:
                state.set_generators(self._restored[1])
            self._late_start = self.clock.batch > 0
            self._restored = None

    def on_train_batch_begin(self, batch, logs=None):
        if self._generators is not None:
            state.set_generators(self._generators)
            self._generators = None
        super().on_train_batch_begin(batch, logs)

    def before_validation(self, run):
        # The validation of an epoch that was stopped half way would replace its running means,
        # and on PyTorch draw from the generator of the dropout.
        means = state.collect(self.model, only=("metrics",))
        # Copies: on a CPU the arrays are the very memory of the variables.
        self._before_validation = {n: a.copy() for n, a in means.items()} | state.generators()

    def on_epoch_end(self, epoch, logs=None):
        if self.clock.complete:
            self._before_validation = None  # The next epoch has means of its own.
            if self._late_start or not self.clock.data.ended:
                state.draw_as_loader()
            self._history.append([epoch, dict(logs or {})])
        super().on_epoch_end(epoch, logs)
        stopped = self._requested or not self.clock.complete
        if stopped or self.every_epoch:
            self.save()
        self._requested = False

    def on_train_end(self, logs=None):
        if self._restored is not None:  # There was nothing left to train.
            self._recall_history()
        self.save_if_requested()

    def after_step(self, before, step):
        late = self.every_seconds is not None
        late = late and time.monotonic() - self._saved_time >= self.every_seconds
        if late or is_due(self.every_n_steps, before, step):
            self.save()

    def save(self):
        """Save now, between two steps of `fit`.

        Returns:
            Path of the checkpoint, or `None` if something was not finite and nothing was
            saved.
        """
        number = self.clock.micro_step
        if number == self._saved_at:
            return self.last_saved
        arrays = state.collect(self.model)
        arrays |= self._before_validation or state.generators()
        bad = state.nonfinite(arrays)
        self._saved_at, self._saved_time = number, time.monotonic()
        if bad:
            warnings.warn(
                f"Nothing was saved at step {self.clock.step}: {len(bad)} arrays are not finite, "
                f"{bad[0]} first. The last good checkpoint is {self.last_saved}.",
                UserWarning,
                stacklevel=2,
            )
            return None
        manifest = {
            **_software(),
            "step": self.clock.step,
            "position": self.clock.position,
            "settings": self._settings,
            "data": self._data,
            "history": self._history,
        }
        self.last_saved = self._files.write(number, manifest, arrays, self.keep)
        self._own = True
        return self.last_saved

    def get_config(self):
        names = ("every_n_steps", "every_seconds", "every_epoch", "keep", "resume", "strict")
        return {"directory": str(self.directory), **{name: getattr(self, name) for name in names}}

    def _compare_settings(self, manifest, model, path, chosen):
        saved, here = manifest["settings"], state.settings(model)
        if getattr(model, "automatic_recipe", False):
            saved, here = (automatic_settings.comparable(s, chosen) for s in (saved, here))
        self._compare(saved, here, path, "settings")

    def _compare(self, saved, here, path, kind):
        found = state.differences(saved, here)
        if found and self.strict:
            raise ValueError(
                f"{path} was saved with other {kind}: {'; '.join(found[:3])}"
                f"{f' and {len(found) - 3} more' if len(found) > 3 else ''}. Use the same, or "
                "`strict=False` to go on with the new ones."
            )

    def _refuse_foreign_checkpoints(self):
        newest = self._files.newest_number()
        if newest >= 0 and (not self._own or newest > self.clock.read_step()):
            raise ValueError(
                f"`directory` {self.directory} holds checkpoints of an earlier run. Pass "
                "resume=True to go on from them, or use another directory."
            )

    def _recall_history(self):
        history = self.model.history
        history.epoch[:0] = [epoch for epoch, _ in self._history]
        for name in self._history[0][1] if self._history else ():
            kept = [logs[name] for _, logs in self._history if name in logs]
            history.history[name] = kept + history.history.get(name, [])


_PLACE = ("step", "epoch", "batch")


def _software():
    return {
        "keras_elf": __version__,
        "keras": keras.__version__,
        "backend": keras.backend.backend(),
    }


def _warn_of_other_software(manifest, path):
    here = _software()
    other = {k: manifest.get(k) for k in here if manifest.get(k) != here[k]}
    if other:
        warnings.warn(
            f"{path} was written under {other}, this is {here}. Training goes on from the same "
            "weights, but the losses will differ from those of an uninterrupted run.",
            UserWarning,
            stacklevel=3,
        )
