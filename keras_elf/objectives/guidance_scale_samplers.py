"""Which scales of self-conditioning guidance a training sees."""

import keras
from keras import ops

from keras_elf import checks, flow
from keras_elf.configurable import Configurable
from keras_elf.objectives.randomness import uniform


class GuidanceScaleSampler(Configurable):
    """Base of the distributions of guidance scales in training.

    A subclass turns numbers in [0, 1) into scales above 0 with `scales(draws)`; one that needs
    other numbers defines `draw(shape, seed)`, see `TimeSampler`.
    """

    def draw(self, shape, seed):
        """Raw numbers: float32 uniforms in [0, 1) of `shape`, `(batch,)`."""
        return uniform(shape, seed)

    def scales(self, draws):
        """float32 scales above 0, `(batch,)`, from what `draw` returned."""
        raise NotImplementedError(f"{type(self).__name__} must define `scales(draws)`")


@keras.saving.register_keras_serializable(package="keras_elf")
class LogUniformScales(GuidanceScaleSampler):
    """Scales w between two bounds, log-uniform in `1 + w`.

    Args:
        minimum, maximum: floats > 0. Default to `0.5`, `5.0`.

    Raises:
        ValueError: for values out of range.

    Source: ELF, arXiv 2605.10938 (training-time self-conditioning guidance).
    """

    def __init__(self, minimum=0.5, maximum=5.0):
        self.minimum = checks.number("minimum", minimum, minimum=1e-3)
        self.maximum = checks.number("maximum", maximum, minimum=self.minimum)

    def scales(self, draws):
        return flow.guidance_scale(draws, self.minimum, self.maximum)


@keras.saving.register_keras_serializable(package="keras_elf")
class ConstantScale(GuidanceScaleSampler):
    """One scale for all rows; with `1.0` the target is not guided.

    Args:
        scale: float > 0. Defaults to `1.0`.

    Raises:
        ValueError: for a value out of range.
    """

    def __init__(self, scale=1.0):
        self.scale = checks.number("scale", scale, minimum=1e-3)

    def scales(self, draws):
        return ops.full_like(draws, self.scale)
