"""What `fit` and `evaluate` accept, brought into batches of token ids."""

import keras
import numpy as np

from keras_elf import checks, denoiser
from keras_elf.data import TokenBatches, check_token_ids
from keras_elf.data.rows import TOKEN_KEYS, row_values
from keras_elf.training.arguments import WeightedBatches
from keras_elf.training.batch_checks import check_weights
from keras_elf.training.run_length import default_batch_size


def is_materialised(x):
    """Whether `x` is text, ids or arrays held in memory, and not a dataset."""
    return isinstance(x, (str, list, tuple, dict, np.ndarray))


def refuse_text(x):
    """Raise `ValueError` for `None` and for a `tf.data.Dataset` of strings."""
    if x is None:
        raise ValueError("`x` must be text, token ids or a dataset. Received: None")
    leaves = keras.tree.flatten(getattr(x, "element_spec", None))
    if any("string" in str(getattr(leaf, "dtype", "")) for leaf in leaves):
        raise ValueError(
            "`x` is a tf.data.Dataset of text. Encode the text first, as ELF's preprocessor works "
            "on Python strings: x = model.preprocessor(list_of_texts). Received: "
            f"{x.element_spec}"
        )


def to_rows(model, x):
    """Rows of token ids from text, id lists or arrays.

    Args:
        model: `ELFGenerator`.
        x: text or ids in any form that its preprocessor takes; an int array
            `(rows, length)`; a dict of arrays with `token_ids` and optionally `is_cond`,
            `is_valid`, `segments`; or a list of such dicts, one a row, as `pack_documents`
            yields them. A dict, also one of `"target"` and `"condition"`, may hold what the
            network's `signals` name, such as `"label"`: arrays `(rows,)`.

    Returns:
        dict of `token_ids` int32, `is_cond` and `is_valid` bool, all `(rows, length)`, and of
        `segments` int32 and arrays `(rows,)` where they were given.

    Raises:
        ValueError: for text without a preprocessor, ids out of range, wrong shapes.
    """
    values = {}
    if isinstance(x, (list, tuple)) and x and all(_is_row(row) for row in x):
        x = {key: np.stack([row[key] for row in x]) for key in x[0]}
    if isinstance(x, dict):
        names = list(denoiser.signals(model.backbone))
        known = list(TOKEN_KEYS) if "token_ids" in x else ["target", "condition"]
        unknown = sorted(set(map(str, x)) - {*known, *names, "sample_weight"})
        if unknown:
            raise ValueError(f"`x` has unknown keys {unknown}. Allowed: {known + names}")
        values = {name: x[name] for name in names if x.get(name) is not None}
        x = {key: value for key, value in x.items() if key not in names}
    if isinstance(x, dict) and "token_ids" in x:
        rows = {k: np.asarray(v) for k, v in x.items() if v is not None}
    elif isinstance(x, np.ndarray) and x.ndim == 2 and np.issubdtype(x.dtype, np.integer):
        rows = {"token_ids": x}
    elif model.preprocessor is None:
        raise ValueError(
            "This model has no preprocessor, so `x` must be token ids: an int array of shape "
            f"(rows, length) or a dict with 'token_ids'. Received: {type(x).__name__}"
        )
    else:
        rows = dict(model.preprocessor(x))
    rows = complete_rows(model, rows)
    values = row_values(values, len(rows["token_ids"]))
    denoiser.check_signals(model.backbone, values)
    return {**rows, **values}


def complete_rows(model, rows):
    """Check `token_ids` and fill in the masks that are missing."""
    ids = rows["token_ids"]
    if not np.issubdtype(ids.dtype, np.integer):
        raise ValueError(f"`token_ids` must be whole numbers. Received dtype: {ids.dtype}")
    check_token_ids(ids, model.backbone.vocabulary_size)
    if ids.ndim != 2 or 0 in ids.shape:
        raise ValueError(
            f"`token_ids` must have shape (rows, length), both above 0. Received: {ids.shape}"
        )
    valid = np.ones(ids.shape, "bool")
    if model.pad_token_id is not None and not model.loss_on_padding:
        valid = ids != model.pad_token_id
    rows = {"is_cond": np.zeros(ids.shape, "bool"), "is_valid": valid, **rows}
    for key in (key for key in TOKEN_KEYS[1:] if key in rows):
        if rows[key].shape != ids.shape:
            raise ValueError(
                f"`{key}` must have the shape of token_ids {ids.shape}. Received: {rows[key].shape}"
            )
        rows[key] = rows[key].astype("int32" if key == "segments" else "bool")
    if not (~rows["is_cond"] & (rows["is_valid"] | model.loss_on_padding)).any():
        raise ValueError(
            "`x` has nothing to learn from: every position is condition or padding. Received "
            f"{len(ids)} rows"
        )
    return {**rows, "token_ids": ids.astype("int32")}


def with_weights(model, x, weight):
    """Rows that carry weights `(rows,)` along, or `x` as it is without weights."""
    if weight is None:
        return x
    rows = to_rows(model, x)
    return {**rows, "sample_weight": check_weights(weight, len(rows["token_ids"]))}


def split_rows(rows, share):
    """`(first rows, last share of the rows)`, as Keras cuts off validation data."""
    share = checks.number("validation_split", share, minimum=0, maximum=1)
    cut = int(len(rows["token_ids"]) * (1 - share))
    if not 0 < cut < len(rows["token_ids"]):
        raise ValueError(
            f"`validation_split` must leave rows on both sides. Received: {share} of "
            f"{len(rows['token_ids'])} rows"
        )
    return {k: v[:cut] for k, v in rows.items()}, {k: v[cut:] for k, v in rows.items()}


def training_batches(model, x, batch_size, seed, shuffle=True):
    """Shuffled batches of one size, the rest of the rows left out of the epoch."""
    rows = to_rows(model, x)
    size = default_batch_size(len(rows["token_ids"])) if batch_size is None else batch_size
    return _batches(rows)(rows, batch_size=_size(size, rows), seed=seed, shuffle=shuffle)


def evaluation_batches(model, x, batch_size):
    """All rows in their order."""
    rows = to_rows(model, x)
    size = _size(batch_size, rows)
    return _batches(rows)(rows, batch_size=size, shuffle=False, drop_remainder=False)


def _batches(rows):
    return WeightedBatches if "sample_weight" in rows else TokenBatches


def _size(batch_size, rows):
    if batch_size is None:
        return min(32, len(rows["token_ids"]))
    return checks.integer("batch_size", batch_size, minimum=1)


def _is_row(row):
    return isinstance(row, dict) and "token_ids" in row
