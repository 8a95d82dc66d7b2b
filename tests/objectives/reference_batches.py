"""Recorded training batches of the public code in the form the objective takes."""

import numpy as np

from keras_elf import flow


def encode(table, token_ids, mask):
    """The toy encoder of the reference: each token plus the mean of the tokens it sees."""
    e = table[token_ids]
    mask = mask.astype("float32")
    return 0.2 * (e + (mask / np.maximum(mask.sum(-1, keepdims=True), 1.0)) @ e)


def batch_of(ref, label_drop=True):
    """`(batch, draws)` of a `train_*` file."""
    ids, is_cond, valid = (ref[f"in/{k}"] for k in ("input_ids", "cond_seq_mask", "attention_mask"))
    mask = ref["in/encoder_attention_mask"].copy()
    dropped = ref["in/label_drop_mask"].astype(bool) & label_drop
    for row in np.flatnonzero(dropped):
        mask[row][np.ix_(is_cond[row] == 0, is_cond[row] == 1)] = 0
    clean = (encode(ref["in/encoder_table"], ids, mask) - ref["latent_mean"]) / ref["latent_std"]
    before_drop = clean.astype("float32")
    clean = np.where(dropped[:, None, None] & (is_cond[..., None] > 0), 0.0, clean)
    counts = (1 - is_cond) * (valid if str(ref["pad_token"]) == "pad" else 1.0)
    batch = {
        "clean": clean.astype("float32"),
        "token_ids": ids.astype("int32"),
        "is_cond": is_cond,
        "counts": counts.astype("float32"),
    }
    return batch, draws_of(ref), before_drop


def draws_of(ref):
    """The objective's draws from recorded values (JAX) or raw normals and uniforms (torch)."""
    rows, length = np.shape(ref["draw/noise"])[:2]
    draws = {"noise": ref["draw/noise"], "decode_noise": ref["draw/decoder_noise_unit"]}
    if "draw/t" in ref:
        draws["t"] = ref["draw/t"]
        draws["decode_mix"] = ref["draw/decoder_lambda"][..., 0]
        draws["guidance_scale"] = ref["draw/self_cond_cfg_scale"]
        draws["use_self_condition"] = ref["draw/use_self_cond"]
        draws["is_decode"] = np.full(rows, bool(ref["decoder"]))
        return draws
    draws["t"] = flow.logit_normal(ref["draw/t_normal"])
    draws["decode_mix"] = flow.logit_normal(
        ref["draw/decoder_normal"].reshape(rows, length), 0.8, 0.8
    )
    draws["guidance_scale"] = flow.guidance_scale(ref["draw/cfg_uniform"])
    draws["use_self_condition"] = ref["draw/use_self_cond_uniform"] < 0.5
    draws["is_decode"] = ref["draw/decoder_active"] > 0
    return draws
