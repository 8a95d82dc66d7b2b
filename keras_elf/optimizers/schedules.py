"""Learning rates over the course of a training."""

import math

import keras
from keras import ops

from keras_elf import checks


@keras.saving.register_keras_serializable(package="keras_elf")
class WarmupSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """A linear warm-up from zero, then a constant, or a decay that ends at `total_steps`.

    Step 0 has learning rate 0 and step `warmup_steps` the peak. ELF (arXiv 2605.10938) warms
    up for half an epoch and stays constant. With the optimizers of this library a step is an
    optimizer step, whatever `gradient_accumulation_steps` is.

    Args:
        peak: float. The largest learning rate.
        warmup_steps: integer. Steps of the linear rise; 0 starts at the peak.
        decay: string. `"constant"`, `"cosine"` (half a cosine from `peak` to `final`) or
            `"linear"`. Defaults to `"constant"`.
        total_steps: integer. The step from which on the rate is `final`. Needed for a decay
            other than `"constant"`. Defaults to `None`.
        final: float. Learning rate at the end of the decay. Defaults to 0.0.
        decay_steps: integer. Length of the decay, counted back from `total_steps`; the rate
            is `peak` between warm-up and decay. A decay over the last third helps short
            trainings. Defaults to `None`, all steps after the warm-up.
        name: string. Defaults to `"warmup_schedule"`.
        first_step: integer. The optimizer's step that counts as 0 here, for a training that
            goes on with an optimizer that has already taken steps. Defaults to 0.

    Raises:
        ValueError: for an unknown decay, a negative number, a decay without `total_steps`,
            steps that do not fit into `total_steps`, or decay arguments for a constant.

    Example:

    ```python
    schedule = WarmupSchedule(2e-3, 100, decay="linear", total_steps=3000, decay_steps=1000)
    ```
    """

    def __init__(
        self,
        peak,
        warmup_steps,
        decay="constant",
        total_steps=None,
        final=0.0,
        decay_steps=None,
        name="warmup_schedule",
        first_step=0,
    ):
        super().__init__()
        self.peak = checks.number("peak", peak, minimum=0)
        self.warmup_steps = checks.integer("warmup_steps", warmup_steps, minimum=0)
        self.decay = checks.choice("decay", decay, _SHAPES)
        self.final = checks.number("final", final, minimum=0)
        self.total_steps, self.decay_steps = total_steps, decay_steps
        self.name = name
        self.first_step = checks.integer("first_step", first_step, minimum=0)
        if total_steps is not None:
            self.total_steps = checks.integer("total_steps", total_steps, minimum=1)
        if decay_steps is not None:
            self.decay_steps = checks.integer("decay_steps", decay_steps, minimum=1)
        self._check_fit()

    def _check_fit(self):
        if self.decay == "constant":
            if self.final or self.decay_steps is not None:
                raise ValueError(
                    "`final` and `decay_steps` need `decay='cosine'` or `'linear'`. Received: "
                    f"decay='constant', final={self.final}, decay_steps={self.decay_steps}"
                )
            return
        if self.total_steps is None:
            raise ValueError(
                f"`total_steps` must be given for `decay={self.decay!r}`. Received: None"
            )
        shortest = self.warmup_steps + (self.decay_steps or 1)
        if self.total_steps < shortest:
            raise ValueError(
                f"`total_steps` must be at least {shortest}, so that warm-up "
                f"({self.warmup_steps} steps) and decay ({self.decay_steps or 'at least 1'}) "
                f"fit. Received: {self.total_steps}"
            )

    def __call__(self, step):
        """Return the learning rate of 0-based `step` (integer scalar), a float32 scalar."""
        step = ops.cast(step, "float32") - self.first_step
        rate = ops.zeros_like(step) + self.peak
        if self.decay != "constant":
            length = self.decay_steps or self.total_steps - self.warmup_steps
            progress = ops.clip((step - (self.total_steps - length)) / length, 0.0, 1.0)
            rate = self.final + (self.peak - self.final) * _SHAPES[self.decay](progress)
        if not self.warmup_steps:
            return rate
        rising = self.peak * (step / self.warmup_steps)
        return ops.where(step < self.warmup_steps, rising, rate)

    def get_config(self):
        return {
            "peak": self.peak,
            "warmup_steps": self.warmup_steps,
            "decay": self.decay,
            "total_steps": self.total_steps,
            "final": self.final,
            "decay_steps": self.decay_steps,
            "name": self.name,
            "first_step": self.first_step,
        }


def scaled_learning_rate(batch_size, base=1e-3):
    """Return `base * batch_size / 256`, ELF's learning rate: 2e-3 at batch 512.

    Args:
        batch_size: integer. Examples in one optimizer step, over all devices and accumulation
            micro-steps.
        base: float. Learning rate at batch 256. Defaults to 1e-3.

    Returns:
        float.
    """
    batch_size = checks.integer("batch_size", batch_size, minimum=1)
    return checks.number("base", base, minimum=0) * batch_size / 256


_SHAPES = {
    "constant": ops.ones_like,
    "cosine": lambda progress: 0.5 * (1.0 + ops.cos(math.pi * progress)),
    "linear": lambda progress: 1.0 - progress,
}
