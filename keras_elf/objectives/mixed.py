"""Loss of a batch in which every row has its own branch: the published composition."""

from keras import ops

from keras_elf import flow
from keras_elf.flow.path import align
from keras_elf.objectives import corruption, losses, passes


def mixed_loss(config, network, batch, draws, training):
    """One mixed forward pass; both losses summed over one denominator.

    Both no-gradient passes and both heads run on all rows: with F one forward pass of the
    batch a step costs 5F. The loss is `(sum CE + sum L2) / counting positions`. When all
    rows carry the same branch this is the one-branch-a-step composition.

    Args and returns: see `ELFObjective.__call__`.
    """
    clean, is_cond, counts = batch["clean"], batch["is_cond"], batch["counts"]
    t, w = draws["t"], draws["guidance_scale"]
    decode = ops.cast(draws["is_decode"], "float32")
    rows = {**batch, **draws}
    z = passes.corrupt_for_denoising(config, rows)
    z_decode = passes.corrupt_for_decoding(config, rows)

    self_condition = corruption.pinned_zeros(clean, is_cond)
    target = flow.velocity(clean, z, t, config.min_time_gap)
    if config.self_conditioning_probability > 0:
        rows = {"clean": clean, "is_cond": is_cond, "z": z, "t": t, "guidance_scale": w}
        own_prediction, guided = passes.self_conditioned(config, network, rows)
        used = align(draws["use_self_condition"], z) > 0.5
        self_condition = ops.where(used, own_prediction, self_condition)
        target = ops.where(used, guided, target)

    decoding = align(decode, z) > 0.5
    hidden = passes.hidden_states(
        network,
        ops.where(decoding, z_decode, z),
        ops.where(decode > 0.5, 1.0, t),
        ops.where(decoding, 0.0, self_condition),
        w,
        decode,
        training,
    )
    x_pred = passes.head_to_clean(config, network, hidden, z, t)
    error = losses.velocity_error(flow.velocity(x_pred, z, t, config.min_time_gap), target)
    entropy = losses.cross_entropy(network.unembedding(hidden), batch["token_ids"])
    l2, l2_count = losses.masked_sum(error, counts * (1.0 - decode)[:, None])
    ce, ce_count = losses.masked_sum(entropy, counts * decode[:, None])
    return {
        "loss": losses.ratio(ce + l2, ce_count + l2_count),
        "denoise_loss": losses.ratio(l2, l2_count),
        "denoise_count": l2_count,
        "decode_loss": losses.ratio(ce, ce_count),
        "decode_count": ce_count,
    }
