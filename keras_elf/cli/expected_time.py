"""How long a run is going to take, told once some of its steps are done."""

import time

from keras_elf.training.callbacks.fit_callback import FitCallback

# The first steps compile, and say nothing of the others.
FIRST, LAST = 3, 13


class ExpectedTime(FitCallback):
    """Says after a few steps how long the rest will take.

    Args:
        total: int. Optimizer steps of the run.
        say: callable that shows the user a line.
    """

    def __init__(self, total, say):
        super().__init__()
        self.total, self.say = total, say

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        self._start, self._marked = self.clock.step, None

    def after_step(self, before, step):
        done = step - self._start
        if done >= FIRST and self._marked is None:
            self._marked = step, time.monotonic()
        elif self._marked is not None and done >= LAST and self._start is not None:
            first, began = self._marked
            seconds = (time.monotonic() - began) / (step - first)
            left = seconds * (self.total - step)
            self.say(f"\n{seconds:.2g} s a step: about {in_words(left)} for the rest.")
            self.after_step = lambda before, step: None


def in_words(seconds):
    """A time as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
