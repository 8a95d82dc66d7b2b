"""What conditional tasks set otherwise than unconditional text."""

from keras_elf.objectives import ELFObjective
from keras_elf.samplers import ODESampler

GUIDANCE_SCALE, LABEL_DROP_PROBABILITY, DECODE_NOISE_SCALE = 2.0, 0.1, 1.0


def conditional_settings():
    """Arguments of `ELFGenerator` for texts that depend on a condition.

    Decode noise 1.0 in place of 5.0, the ODE sampler in place of the SDE, a tenth of the rows
    trained without their condition, and guidance on it. The preprocessor should pad with the
    end token (`pad_with="end"`), so that the model learns where to stop.

    Example:

    ```python
    keras_elf.ELFGenerator(backbone, encoder, preprocessor, **conditional_settings())
    ```

    Returns:
        dict of `objective`, `sampler`, `guidance_scale` and `label_drop_probability`.

    Source: ELF, arXiv 2605.10938 (recipes of translation and summarisation); the guidance
    scale is this library's.
    """
    return {
        "objective": ELFObjective(decode_noise_scale=DECODE_NOISE_SCALE),
        "sampler": ODESampler(),
        "guidance_scale": GUIDANCE_SCALE,
        "label_drop_probability": LABEL_DROP_PROBABILITY,
    }
