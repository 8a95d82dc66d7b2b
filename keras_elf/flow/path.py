"""The straight path between noise and clean latents, and its velocity.

Time runs from 0 (noise) to 1 (clean). Everything here is float32 arithmetic on tensors
that broadcast against `(batch, length, width)`; a time of shape `(batch,)` or
`(batch, length)` is aligned to the leading axes.
"""

from keras import ops

MIN_TIME_GAP = 0.05
NOISE_SCALE = 2.0


def align(value, like):
    """Cast `value` to float32 and append unit axes until it has the rank of `like`."""
    value = ops.cast(value, "float32")
    missing = len(like.shape) - len(value.shape)
    if len(value.shape) == 0:
        return value
    return ops.reshape(value, tuple(ops.shape(value)) + (1,) * missing) if missing else value


def interpolate(clean, noise, t, noise_scale=NOISE_SCALE):
    """The point at time `t` between noise and `clean`: `t x + (1 - t) s e`.

    Args:
        clean: tensor `(batch, length, width)`. Clean latents x.
        noise: tensor of the same shape. Standard normal noise e.
        t: tensor `()`, `(batch,)` or `(batch, length)`. Flow time in [0, 1].
        noise_scale: float. Scale s of the noise. Defaults to `2.0`.

    Returns:
        float32 tensor of the shape of `clean`.
    """
    clean, noise = ops.cast(clean, "float32"), ops.cast(noise, "float32")
    t = align(t, clean)
    return t * clean + (1.0 - t) * noise_scale * noise


def velocity(clean, z, t, min_time_gap=MIN_TIME_GAP):
    """The velocity at `z` that leads to `clean` at time 1: `(x - z) / max(1 - t, gap)`.

    The floor under `1 - t` keeps the quotient finite near the clean end.
    """
    clean, z = ops.cast(clean, "float32"), ops.cast(z, "float32")
    return (clean - z) / ops.maximum(1.0 - align(t, z), min_time_gap)


def clean_from_velocity(v, z, t, min_time_gap=MIN_TIME_GAP):
    """Inverse of `velocity`: the clean latents that velocity `v` at `z` points to."""
    v, z = ops.cast(v, "float32"), ops.cast(z, "float32")
    return z + ops.maximum(1.0 - align(t, z), min_time_gap) * v


def clean_from_noise(noise, z, t, noise_scale=NOISE_SCALE, min_time=MIN_TIME_GAP):
    """Clean latents implied by predicted unit `noise`: `(z - (1 - t) s e) / max(t, floor)`."""
    noise, z = ops.cast(noise, "float32"), ops.cast(z, "float32")
    t = align(t, z)
    return (z - (1.0 - t) * noise_scale * noise) / ops.maximum(t, min_time)
