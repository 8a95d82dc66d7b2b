"""Ctrl-C that loses nothing."""

import signal
import sys
import threading

import keras

from keras_elf.training.callbacks.fit_callback import FitCallback
from keras_elf.training.callbacks.resumable_checkpoint import ResumableCheckpoint

SIGNALS = ("SIGINT", "SIGTERM")


@keras.saving.register_keras_serializable(package="keras_elf")
class InterruptSafely(FitCallback):
    """On Ctrl-C finishes the step, saves, ends `fit`, and says how to go on.

    SIGTERM, by which cluster schedulers announce that a machine is to be taken away, does the
    same. A second signal aborts at once: what came after the last checkpoint is lost then. It
    needs a `ResumableCheckpoint` among the callbacks. `interrupted` tells afterwards whether
    `fit` ended that way. Outside of the main thread signals cannot be had, and it does nothing.

    Args:
        print_fn: function of one string. Defaults to printing on the standard error.
        hint: str. What to say of how to go on. Defaults to what to do in Python.

    Raises:
        ValueError: in `fit`, without a `ResumableCheckpoint`.
    """

    def __init__(self, print_fn=None, hint=None):
        super().__init__()
        if print_fn is not None and not callable(print_fn):
            raise ValueError(f"`print_fn` must be a function or None. Received: {print_fn!r}")
        if hint is not None and not isinstance(hint, str):
            raise ValueError(f"`hint` must be a str or None. Received: {hint!r}")
        self.print_fn, self.hint = print_fn, hint
        self.interrupted = False
        self._previous = {}

    def before_fit(self, run):
        self._checkpoint, self.interrupted = run.find(ResumableCheckpoint), False
        if self._checkpoint is None:
            raise ValueError(
                "`InterruptSafely` needs a `ResumableCheckpoint` among the callbacks: it saves "
                "where training stops."
            )

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        if threading.current_thread() is threading.main_thread():
            for name in SIGNALS:
                number = getattr(signal, name)
                self._previous[number] = signal.signal(number, self._handle)

    def on_train_end(self, logs=None):
        if self.interrupted:
            # The one that saves may come after this one.
            self._checkpoint.save_if_requested()
            directory = str(self._checkpoint.directory)
            hint = self.hint or (
                f"run the same again with ResumableCheckpoint({directory!r}, resume=True)."
            )
            saved = self._checkpoint.last_saved
            self._say(f"Stopped at step {self.clock.step}; saved {saved}. To go on: {hint}")

    def after_fit(self, run):
        self._give_back()

    def get_config(self):
        return {"hint": self.hint}

    def _handle(self, number, frame):
        self._give_back()
        self.interrupted = True
        self._checkpoint.request()
        self.run.stop(skip_validation=True)
        self._say("Finishing the step and saving. Once more to abort at once.")

    def _give_back(self):
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}

    def _say(self, message):
        if self.print_fn is not None:
            self.print_fn(message)
        else:
            print(f"\n{message}", file=sys.stderr, flush=True)
