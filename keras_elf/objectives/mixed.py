"""Loss of a batch in which every row has its own branch: the published composition."""

from keras import ops

from keras_elf import flow
from keras_elf.flow.path import align
from keras_elf.objectives import corruption, losses, passes
from keras_elf.objectives.terms import measure


def mixed_loss(config, network, batch, draws, training):
    """One mixed forward pass; both losses summed over one denominator.

    Both no-gradient passes and both heads run on all rows: with F one forward pass of the
    batch a step costs 5F. The loss is `(sum CE + sum L2) / counting positions`. When all
    rows carry the same branch this is the one-branch-a-step composition.

    Args and returns: see `ELFObjective.__call__`.
    """
    clean, counts, t = batch["clean"], batch["counts"], draws["t"]
    decode = ops.cast(draws["is_decode"], "float32")
    rows = {**batch, **draws}
    rows["z"] = z = passes.corrupt_for_denoising(config, rows)

    self_condition = corruption.pinned_zeros(clean, batch["is_cond"])
    target = flow.velocity(clean, z, t, config.min_time_gap)
    if config.self_conditioning_probability > 0:
        own_prediction, guided = passes.self_conditioned(config, network, rows)
        used = align(draws["use_self_condition"], z) > 0.5
        self_condition = ops.where(used, own_prediction, self_condition)
        target = ops.where(used, guided, target)

    decoding = align(decode, z) > 0.5
    shown = {
        **rows,
        "z": ops.where(decoding, passes.corrupt_for_decoding(config, rows), z),
        "t": ops.where(decode > 0.5, 1.0, t),
    }
    self_condition = ops.where(decoding, 0.0, self_condition)
    hidden = passes.hidden_states(network, shown, self_condition, decode, training)
    x_pred = passes.head_to_clean(config, network, hidden, z, t)
    logits = network.unembedding(hidden)
    denoise = {
        "error": passes.denoising_error(config, x_pred, target, z, t),
        "counts": counts * (1.0 - decode)[:, None],
        "t": t,
        "predicted": x_pred,
        "clean": clean,
        "z": z,
    }
    decoded = {
        "entropy": losses.cross_entropy(logits, batch["token_ids"]),
        "counts": counts * decode[:, None],
        "logits": logits,
        "token_ids": batch["token_ids"],
    }
    l2, l2_count = losses.masked_sum(denoise["error"], denoise["counts"])
    ce, ce_count = losses.masked_sum(decoded["entropy"], decoded["counts"])
    added, entries = measure(config.terms, denoise, decoded)
    return {
        "loss": losses.ratio(ce + l2, ce_count + l2_count) + added,
        "denoise_loss": (losses.ratio(l2, l2_count), l2_count),
        "decode_loss": (losses.ratio(ce, ce_count), ce_count),
        **entries,
    }
