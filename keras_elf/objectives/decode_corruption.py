"""How the latents are spoilt from which the decode branch reads tokens."""

import keras

from keras_elf import checks, flow
from keras_elf.configurable import Configurable
from keras_elf.objectives.randomness import normal, uniform


class DecodeCorruption(Configurable):
    """Base of the corruptions of the decode branch.

    A subclass says with `mixes` how much of each token stays, or with `corrupt` what else
    happens to the latents.
    """

    noise_scale = 1.0

    def draw(self, shape, seed):
        """Raw numbers, rows first: float32 uniforms in [0, 1) of `shape`, `(batch, length)`."""
        return uniform(shape, seed)

    def mixes(self, draws):
        """Share of the clean latents in each token, `(batch, length)`, from the draws."""
        raise NotImplementedError(f"{type(self).__name__} must define `mixes(draws)`")

    def corrupt(self, clean, noise, mix):
        """Input of the network: `p x + (1 - p) s e`.

        Args:
            clean: float32 `(rows, length, width)`. Clean latents x, the condition's as well.
            noise: same shape. Standard normals e.
            mix: what `mixes` returned, of those rows.

        Returns:
            float32 tensor of the shape of `clean`.
        """
        return flow.interpolate(clean, noise, mix, self.noise_scale)


@keras.saving.register_keras_serializable(package="keras_elf")
class LogitNormalCorruption(DecodeCorruption):
    """Each token mixed with noise by its own logit-normal amount.

    Args:
        mean: float. Defaults to `0.8`.
        std: float >= 0. Defaults to `0.8`.
        noise_scale: float >= 0. `5.0` (default) for unconditional text, `1.0` for translation
            and summarisation.

    Raises:
        ValueError: for values out of range.

    Source: ELF, arXiv 2605.10938 (decoding at t = 1).
    """

    def __init__(
        self,
        mean=flow.schedules.DECODE_TIME_MEAN,
        std=flow.schedules.DECODE_TIME_STD,
        noise_scale=5.0,
    ):
        self.mean = checks.number("mean", mean)
        self.std = checks.number("std", std, minimum=0)
        self.noise_scale = checks.number("noise_scale", noise_scale, minimum=0)

    def draw(self, shape, seed):
        return normal(shape, seed)

    def mixes(self, draws):
        return flow.logit_normal(draws, self.mean, self.std)
