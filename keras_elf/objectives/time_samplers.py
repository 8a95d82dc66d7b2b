"""Which times of the flow a training sees."""

import keras
from keras import ops

from keras_elf import checks, flow
from keras_elf.configurable import Configurable
from keras_elf.objectives.randomness import normal, uniform


class TimeSampler(Configurable):
    """Base of the distributions of training times.

    A subclass turns numbers in [0, 1) into times; one that needs other numbers draws its own.

    ```python
    @keras.saving.register_keras_serializable(package="my_package")
    class EarlyTimes(TimeSampler):
        def times(self, draws):
            return draws**2
    ```
    """

    def draw(self, shape, seed):
        """Raw numbers, with rows as the first axis: float32 uniforms in [0, 1) of `shape`.

        Args:
            shape: `(batch,)`.
            seed: see `keras_elf.objectives.normal`.

        Returns:
            tensor, or nest of tensors.
        """
        return uniform(shape, seed)

    def times(self, draws):
        """float32 times in [0, 1], `(batch,)`, from what `draw` returned."""
        raise NotImplementedError(f"{type(self).__name__} must define `times(draws)`")


@keras.saving.register_keras_serializable(package="keras_elf")
class LogitNormalTimes(TimeSampler):
    """`sigmoid(mean + std * normal)`.

    Args:
        mean: float. Defaults to `-1.5`.
        std: float >= 0. Defaults to `0.8`.

    Raises:
        ValueError: for values out of range.

    Source: ELF, arXiv 2605.10938 (published training times).
    """

    def __init__(self, mean=flow.schedules.TIME_MEAN, std=flow.schedules.TIME_STD):
        self.mean = checks.number("mean", mean)
        self.std = checks.number("std", std, minimum=0)

    def draw(self, shape, seed):
        return normal(shape, seed)

    def times(self, draws):
        return flow.logit_normal(draws, self.mean, self.std)


@keras.saving.register_keras_serializable(package="keras_elf")
class UniformTimes(TimeSampler):
    """All times between two bounds alike.

    Args:
        minimum, maximum: floats in [0, 1]. Default to `0.0`, `1.0`.

    Raises:
        ValueError: for values out of range.
    """

    def __init__(self, minimum=0.0, maximum=1.0):
        self.minimum = checks.number("minimum", minimum, minimum=0, maximum=1)
        self.maximum = checks.number("maximum", maximum, minimum=self.minimum, maximum=1)

    def times(self, draws):
        return self.minimum + (self.maximum - self.minimum) * draws


@keras.saving.register_keras_serializable(package="keras_elf")
class MixtureTimes(TimeSampler):
    """Each row's time from one of several samplers, chosen by weight.

    Args:
        samplers: list of `TimeSampler`.
        weights: list of floats > 0, shares of the samplers. Defaults to equal ones.

    Raises:
        ValueError: for no samplers, or weights that do not fit them.
    """

    def __init__(self, samplers, weights=None):
        self.samplers = list(samplers)
        self.weights = [1.0] * len(self.samplers) if weights is None else list(weights)
        if not self.samplers or not all(hasattr(s, "times") for s in self.samplers):
            raise ValueError(f"`samplers` must be a list of TimeSampler. Received: {samplers!r}")
        if len(self.weights) != len(self.samplers):
            raise ValueError(
                "`weights` must hold a weight for each sampler. Received: "
                f"{len(self.weights)} weights, {len(self.samplers)} samplers"
            )
        self.weights = [checks.number("weights", w, minimum=1e-9) for w in self.weights]

    def draw(self, shape, seed):
        return {
            "choice": uniform(shape, seed),
            "parts": [s.draw(shape, seed) for s in self.samplers],
        }

    def times(self, draws):
        times = [s.times(part) for s, part in zip(self.samplers, draws["parts"], strict=True)]
        chosen, bound = times[-1], 1.0
        for weight, one in zip(self.weights[:0:-1], times[-2::-1], strict=True):
            bound -= weight / sum(self.weights)
            chosen = ops.where(draws["choice"] < bound, one, chosen)
        return chosen
