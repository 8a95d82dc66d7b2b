"""From clean latents and draws to the inputs and the target of the network.

Pure functions of tensors: every draw is an argument.
"""

from keras import ops

from keras_elf import flow


def denoise_input(clean, is_cond, noise, t, noise_scale):
    """`t x + (1 - t) s e` with condition positions held at the clean latents."""
    return flow.pin(flow.interpolate(clean, noise, t, noise_scale), clean, is_cond)


def pinned_zeros(clean, is_cond):
    """The empty self-condition: zeros with the condition in its place."""
    return flow.pin(ops.zeros_like(clean), clean, is_cond)


def guided_target(clean, z, t, guidance_scale, conditioned, unconditioned, min_time_gap):
    """Training-time guidance: `v(x) + (1 - 1/w) (v(x_s) - v(x_u))`.

    Args:
        clean: `(batch, length, width)`. Clean latents x.
        z: same shape. The noisy latents.
        t: `(batch,)`. Flow time.
        guidance_scale: `(batch,)`. Scale w > 0.
        conditioned: prediction x_s with self-conditioning.
        unconditioned: prediction x_u without.
        min_time_gap: float. Floor under `1 - t`.

    Source: ELF, arXiv 2605.10938 (self-conditioning guidance in training).
    """
    v = flow.velocity(clean, z, t, min_time_gap)
    shift = flow.velocity(conditioned, z, t, min_time_gap) - flow.velocity(
        unconditioned, z, t, min_time_gap
    )
    return v + (1.0 - 1.0 / flow.path.align(guidance_scale, z)) * shift
