"""The forward passes that the compositions share."""

from keras_elf import flow
from keras_elf.objectives import corruption
from keras_elf.objectives.no_gradient import without_gradient


def predict_clean(config, network, z, t, self_condition, guidance_scale, training):
    """The network's clean latents at `(z, t)` in denoise mode, float32."""
    hidden = hidden_states(network, z, t, self_condition, guidance_scale, 0.0, training)
    return head_to_clean(config, network, hidden, z, t)


def hidden_states(network, z, t, self_condition, guidance_scale, decode, training):
    """Hidden states; networks without guidance tokens are given no scale."""
    return network.hidden_states(
        z,
        t,
        self_condition=self_condition,
        guidance_scale=guidance_scale if network.num_guidance_tokens else None,
        decode=decode,
        training=training,
    )


def head_to_clean(config, network, hidden, z, t):
    """The denoising head's output as clean latents, whatever it predicts."""
    return flow.predicted_clean(
        network.denoising_head(hidden),
        z,
        t,
        config.prediction,
        config.noise_scale,
        config.min_time_gap,
    )


def self_conditioned(config, network, rows):
    """Self-condition half and guided target of rows that use self-conditioning.

    Two forward passes without gradient, one for a network without guidance tokens: x_u
    serves as the self-condition and as the unconditioned side of the guidance.

    Args:
        config: `ELFObjective`.
        network: see `ELFObjective`.
        rows: dict with `clean`, `is_cond`, `z`, `t`, `guidance_scale` of those rows.

    Returns:
        `(self_condition, target velocity)`, both `(rows, length, width)`.
    """
    clean, is_cond, z, t = rows["clean"], rows["is_cond"], rows["z"], rows["t"]
    w = rows["guidance_scale"]
    empty = corruption.pinned_zeros(clean, is_cond)
    x_u = without_gradient(predict_clean, config, network, z, t, empty, w, False)
    self_condition = flow.pin(x_u, clean, is_cond)
    if not network.num_guidance_tokens:
        return self_condition, flow.velocity(clean, z, t, config.min_time_gap)
    x_s = without_gradient(predict_clean, config, network, z, t, self_condition, w, False)
    target = corruption.guided_target(clean, z, t, w, x_s, x_u, config.min_time_gap)
    return self_condition, target


def corrupt_for_denoising(config, rows):
    """z of denoise rows: dict with `clean`, `is_cond`, `noise`, `t`."""
    return corruption.denoise_input(
        rows["clean"], rows["is_cond"], rows["noise"], rows["t"], config.noise_scale
    )


def corrupt_for_decoding(config, rows):
    """z of decode rows: dict with `clean`, `decode_noise`, `decode_mix`."""
    return corruption.decode_input(
        rows["clean"], rows["decode_noise"], rows["decode_mix"], config.decode_noise_scale
    )
