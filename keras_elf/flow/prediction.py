"""What the network's output means: clean latents, velocity or noise."""

from keras_elf import checks
from keras_elf.flow.path import clean_from_noise, clean_from_velocity

PREDICTIONS = ("x", "v", "epsilon")


def predicted_clean(output, z, t, prediction="x", noise_scale=2.0, min_time_gap=0.05):
    """Clean latents that the network's `output` at `(z, t)` stands for.

    Args:
        output: tensor `(batch, length, width)`. What the denoising head returned.
        z: tensor of the same shape. The noisy latents it was given.
        t: tensor `(batch,)`. Flow time.
        prediction: `"x"` (as published), `"v"` or `"epsilon"` (the paper's ablation).
        noise_scale: float. Scale of the noise; read by `"epsilon"`.
        min_time_gap: float. Floor under `1 - t` (`"v"`) or `t` (`"epsilon"`).
    """
    checks.choice("prediction", prediction, PREDICTIONS)
    if prediction == "v":
        return clean_from_velocity(output, z, t, min_time_gap)
    if prediction == "epsilon":
        return clean_from_noise(output, z, t, noise_scale, min_time_gap)
    return output
