"""How much the squared error of the clean latents counts at each time."""

import keras
from keras import ops

from keras_elf import checks
from keras_elf.configurable import Configurable


class Weighting(Configurable):
    """Base of the weightings of the denoising error.

    A subclass is a function of t:

    ```python
    @keras.saving.register_keras_serializable(package="my_package")
    class LateWeighting(Weighting):
        def weight(self, t):
            return t**2
    ```
    """

    def weight(self, t):
        """float32 weights `(rows,)` of the squared error of clean latents at times `(rows,)`."""
        raise NotImplementedError(f"{type(self).__name__} must define `weight(t)`")

    def of_velocity_error(self, t, min_time_gap):
        """The same weight, on the squared error of velocities with floor `min_time_gap`."""
        return self.weight(t) * ops.square(ops.maximum(1.0 - t, min_time_gap))


@keras.saving.register_keras_serializable(package="keras_elf")
class VelocityWeighting(Weighting):
    """`1 / max(1 - t, gap)**2`: the squared error of the velocity, as published.

    Args:
        min_time_gap: float. Floor under `1 - t`. Defaults to `None`: the objective's.

    Raises:
        ValueError: for a value out of range.

    Source: ELF, arXiv 2605.10938 (training objective).
    """

    def __init__(self, min_time_gap=None):
        self.min_time_gap = min_time_gap
        if min_time_gap is not None:
            self.min_time_gap = checks.number("min_time_gap", min_time_gap, 1e-6, 1)

    def weight(self, t):
        return 1.0 / ops.square(ops.maximum(1.0 - t, self.min_time_gap or 0.05))

    def of_velocity_error(self, t, min_time_gap):
        # Exactly one, and not a quotient that rounds.
        if self.min_time_gap in (None, min_time_gap):
            return ops.ones_like(t)
        return super().of_velocity_error(t, min_time_gap)


@keras.saving.register_keras_serializable(package="keras_elf")
class UniformWeighting(Weighting):
    """1 at all times: the plain squared error of the clean latents."""

    def weight(self, t):
        return ops.ones_like(t)
