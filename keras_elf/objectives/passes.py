"""The forward passes that the compositions share."""

from keras_elf import denoiser, flow
from keras_elf.objectives import corruption, losses
from keras_elf.objectives.no_gradient import without_gradient


def predict_clean(config, network, rows, self_condition, training):
    """The network's clean latents for rows in denoise mode, float32."""
    hidden = hidden_states(network, rows, self_condition, 0.0, training)
    return head_to_clean(config, network, hidden, rows["z"], rows["t"])


def hidden_states(network, rows, self_condition, decode, training):
    """Hidden states of rows.

    Args:
        network: see `keras_elf.Denoiser`.
        rows: dict with `z`, `t`, `guidance_scale` and optionally `signals`, a dict.
    """
    return denoiser.hidden_states(
        network,
        rows["z"],
        rows["t"],
        self_condition,
        rows["guidance_scale"],
        decode,
        rows.get("signals"),
        training,
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

    Two forward passes without gradient, one for a network that takes no guidance scale: x_u
    serves as the self-condition and as the unconditioned side of the guidance.

    Args:
        config: `ELFObjective`.
        network: see `ELFObjective`.
        rows: dict with `clean`, `is_cond`, `z`, `t`, `guidance_scale` of those rows, and
            optionally `signals`.

    Returns:
        `(self_condition, target velocity)`, both `(rows, length, width)`.
    """
    clean, is_cond, z, t = rows["clean"], rows["is_cond"], rows["z"], rows["t"]
    empty = corruption.pinned_zeros(clean, is_cond)
    x_u = without_gradient(predict_clean, config, network, rows, empty, False)
    self_condition = flow.pin(x_u, clean, is_cond)
    if not denoiser.takes_guidance_scale(network):
        return self_condition, flow.velocity(clean, z, t, config.min_time_gap)
    x_s = without_gradient(predict_clean, config, network, rows, self_condition, False)
    target = corruption.guided_target(
        clean, z, t, rows["guidance_scale"], x_s, x_u, config.min_time_gap
    )
    return self_condition, target


def corrupt_for_denoising(config, rows):
    """z of denoise rows: dict with `clean`, `is_cond`, `noise`, `t`."""
    return corruption.denoise_input(
        rows["clean"], rows["is_cond"], rows["noise"], rows["t"], config.noise_scale
    )


def corrupt_for_decoding(config, rows):
    """z of decode rows: dict with `clean`, `decode_noise`, `decode_mix`."""
    return config.decode_corruption.corrupt(rows["clean"], rows["decode_noise"], rows["decode_mix"])


def denoising_error(config, x_pred, target, z, t):
    """Weighted squared error of clean latents against a target velocity, `(rows, length)`.

    In velocities, as published; other weightings are a factor on it, so that the published
    one rounds nowhere.
    """
    error = losses.velocity_error(flow.velocity(x_pred, z, t, config.min_time_gap), target)
    weight = config.weighting.of_velocity_error(t, config.min_time_gap)
    if tuple(weight.shape) != tuple(t.shape):
        raise ValueError(
            f"`weight` of the weighting {type(config.weighting).__name__} must return one number a "
            f"row, shape {tuple(t.shape)}. Received shape: {tuple(weight.shape)}"
        )
    return error * weight[:, None]
