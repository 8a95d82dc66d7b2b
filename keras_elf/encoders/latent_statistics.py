"""Mean and spread of an encoder's latents, for their standardisation."""

import numpy as np
from keras import ops

from keras_elf import checks


def latent_statistics(encoder, rows, max_rows=512, batch_size=64):
    """Mean and standard deviation over all entries of the latents of valid tokens.

    Args:
        encoder: a `TextEncoder`.
        rows: dict of `token_ids` `(rows, length)` and `is_valid`.
        max_rows: int. How many rows are looked at, evenly spread. Defaults to `512`.
        batch_size: int. Rows encoded at once. Defaults to `64`.

    Returns:
        `(mean, std)`: floats to give to `ELFGenerator` as `latent_mean`, `latent_std`.
    """
    max_rows = checks.integer("max_rows", max_rows, minimum=1)
    total = len(rows["token_ids"])
    chosen = np.linspace(0, total - 1, min(total, max_rows)).astype("int64")
    count, first, second = 0, 0.0, 0.0
    for start in range(0, len(chosen), batch_size):
        picked = chosen[start : start + batch_size]
        valid = np.asarray(rows["is_valid"])[picked]
        ids = ops.convert_to_tensor(np.asarray(rows["token_ids"])[picked], "int32")
        latents = ops.convert_to_numpy(encoder(ids, attention_mask=ops.convert_to_tensor(valid)))
        values = latents[valid].astype("float64")
        count += values.size
        first += values.sum()
        second += np.square(values).sum()
    mean = first / max(count, 1)
    return float(mean), float(np.sqrt(max(second / max(count, 1) - mean**2, 1e-12)))
