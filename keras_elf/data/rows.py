"""Rows of token ids: the condition, the target behind it, an end token, then padding.

Pure NumPy, and the only place that knows the layout of a row; the way back from sampled rows to
plain sequences (cut at the end token, drop the condition) stands beside it.
"""

import numpy as np

from keras_elf import checks

PAD_WITH = ("pad", "end")
# All that rows may hold of each token. Beside these there may be values that a row has one of.
TOKEN_KEYS = ("token_ids", "is_cond", "is_valid", "segments")


def make_rows(
    targets,
    conditions=None,
    *,
    sequence_length,
    condition_length=None,
    pad_id,
    end_id,
    pad_with="pad",
    add_end_token=True,
):
    """Lay out sequences of token ids as rows of one fixed length.

    A row is `[condition | target | end token | padding]`. The condition is cut to
    `condition_length`, then the target and its end token to what is left. A target that had to be
    cut gets no end token: the text does not end there, and a model must not learn that it does.

    ELF's published unconditional models pad with the padding token; its conditional models pad
    with the end token, so that the padding teaches where to stop ("pad with" in the recipes of
    ELF, arXiv 2605.10938).

    Args:
        targets: list of sequences of int. The texts to be generated, one a row. May be empty
            sequences.
        conditions: list of sequences of int. What each text depends on, as many as `targets`.
            Defaults to `None`: no row has a condition.
        sequence_length: int. Number of tokens in a row.
        condition_length: int. Most tokens of a row that its condition may take, at most
            `sequence_length - 1`. Defaults to `None`: all but one.
        pad_id: int. Id of the padding token.
        end_id: int. Id of the end token.
        pad_with: `"pad"` or `"end"`. The token that fills up a row. Defaults to `"pad"`.
        add_end_token: bool. Whether to put the end token behind each target that does not end
            with it already. Defaults to `True`.

    Returns:
        A tuple `(rows, number_cut)`. `rows` is a dict of arrays of shape
        `(len(targets), sequence_length)`: `token_ids` (int32), `is_cond` (bool, the positions of
        the condition) and `is_valid` (bool, all positions but the padding, whatever it is padded
        with). `number_cut` is the number of rows that lost tokens of their condition or target;
        an end token for which no place was left does not count.

    Raises:
        ValueError: if there are no targets, the numbers of targets and conditions differ, a
            length is out of range, or a sequence is not a flat list of token ids.
    """
    sequence_length, condition_length = check_lengths(sequence_length, condition_length)
    checks.choice("pad_with", pad_with, PAD_WITH)
    targets = _sequences("targets", targets)
    if conditions is None:
        conditions = [np.zeros(0, "int32")] * len(targets)
    else:
        conditions = _sequences("conditions", conditions)
    if len(conditions) != len(targets):
        raise ValueError(
            "`conditions` must have one entry for each of the targets. Received: "
            f"{len(conditions)} conditions, {len(targets)} targets"
        )
    shape = (len(targets), sequence_length)
    token_ids = np.full(shape, pad_id if pad_with == "pad" else end_id, dtype="int32")
    is_cond, is_valid = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    limit = sequence_length - 1 if condition_length is None else condition_length
    number_cut = 0
    for row, (condition, target) in enumerate(zip(conditions, targets, strict=True)):
        start = min(len(condition), limit)
        stop = min(start + len(target), sequence_length)
        token_ids[row, :start] = condition[:start]
        token_ids[row, start:stop] = target[: stop - start]
        is_cut = len(target) > stop - start
        number_cut += is_cut or len(condition) > start
        ended = len(target) > 0 and target[-1] == end_id
        if add_end_token and not is_cut and not ended and stop < sequence_length:
            token_ids[row, stop] = end_id
            stop += 1
        is_cond[row, :start] = True
        is_valid[row, :stop] = True
    rows = {"token_ids": token_ids, "is_cond": is_cond, "is_valid": is_valid}
    return rows, int(number_cut)


def row_values(values, num_rows):
    """Values that a row has one of each, such as a class, as arrays that go with rows.

    Args:
        values: dict from names to int, float or bool arrays `(num_rows,)`.
        num_rows: int.

    Returns:
        dict of int32, float32 or bool arrays `(num_rows,)`.

    Raises:
        ValueError: for other shapes, and for what is not a finite number.
    """
    checked = {}
    for name, value in values.items():
        try:
            array = np.asarray(value)
        except ValueError:  # ragged
            array = np.zeros((0, 0))
        if array.shape != (num_rows,) or array.dtype.kind not in "iufb":
            raise ValueError(
                f"`{name}` must be {num_rows} numbers, one a row. Received: {value!r:.80} "
                f"(shape {array.shape}, dtype {array.dtype})"
            )
        dtype = {"f": "float32", "b": "bool"}.get(array.dtype.kind, "int32")
        checked[name] = array.astype(dtype)
        if not (np.isfinite(checked[name]).all() and np.allclose(checked[name], array)):
            raise ValueError(f"`{name}` must be finite and fit {dtype}. Received: {value!r:.80}")
    return checked


def cut_at_end(token_ids, end_id, pad_id):
    """Turn the first end token of each row, and all behind it, into padding.

    Args:
        token_ids: int array of shape `(rows, length)`.
        end_id: int. Id of the end token.
        pad_id: int. Id of the padding token.

    Returns:
        A new int32 array of the same shape.
    """
    token_ids = _matrix(token_ids)
    is_ended = np.cumsum(token_ids == end_id, axis=1) > 0
    return np.where(is_ended, pad_id, token_ids).astype("int32")


def strip_prefix(token_ids, prefix_lengths, pad_id):
    """Shift each row left over its prefix and fill up with padding.

    Args:
        token_ids: int array of shape `(rows, length)`.
        prefix_lengths: int array of shape `(rows,)`. Tokens to drop from each row's start.
        pad_id: int. Id of the padding token.

    Returns:
        A new int32 array of the same shape.
    """
    token_ids = _matrix(token_ids)
    prefix_lengths = np.asarray(prefix_lengths)
    length = token_ids.shape[1]
    if (
        prefix_lengths.shape != token_ids.shape[:1]
        or prefix_lengths.dtype.kind not in "iu"
        or ((prefix_lengths < 0) | (prefix_lengths > length)).any()
    ):
        raise ValueError(
            f"`prefix_lengths` must be {token_ids.shape[0]} whole numbers in [0, {length}], one "
            f"for each row. Received: {prefix_lengths.tolist()}"
        )
    source = np.arange(length) + prefix_lengths[:, None]
    shifted = np.take_along_axis(token_ids, np.minimum(source, length - 1), axis=1)
    return np.where(source < length, shifted, pad_id).astype("int32")


def check_lengths(sequence_length, condition_length=None):
    """Return both lengths of a row as int (or `None`); raise `ValueError` if out of range."""
    sequence_length = checks.integer("sequence_length", sequence_length, minimum=1)
    if condition_length is not None:
        checks.integer("condition_length", condition_length, minimum=1)
        if condition_length >= sequence_length:
            raise ValueError(
                "`condition_length` must be smaller than `sequence_length`, which counts the "
                f"condition and the target together. Received: condition_length="
                f"{condition_length}, sequence_length={sequence_length}"
            )
        condition_length = int(condition_length)
    return sequence_length, condition_length


def check_token_ids(token_ids, vocabulary_size):
    """Raise `ValueError` that names the place of the first id outside the vocabulary.

    Args:
        token_ids: int array of any shape, or list of sequences of int.
        vocabulary_size: int. Ids must lie in `[0, vocabulary_size)`.
    """
    for row, ids in enumerate(token_ids):
        ids = np.asarray(ids)
        if ids.size and not np.issubdtype(ids.dtype, np.integer):
            raise ValueError(f"Token ids must be whole numbers. Received dtype {ids.dtype}: {ids}")
        bad = (ids < 0) | (ids >= vocabulary_size)
        if bad.any():
            place = tuple(int(i) for i in np.argwhere(bad)[0])
            raise ValueError(
                f"Token ids must lie in the vocabulary, [0, {vocabulary_size}). "
                f"Received: {ids[place]} at index {[row, *place]}"
            )


def _sequences(name, sequences):
    """Each sequence as a flat integer array; empty ones are allowed, an empty list is not."""
    arrays = []
    for index, sequence in enumerate(sequences):
        try:
            array = np.asarray(sequence)
        except ValueError:  # ragged nesting
            array = np.zeros((0, 0))
        if array.size == 0 and array.ndim == 1:
            array = array.astype("int32")
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise ValueError(
                f"`{name}` must be a list of sequences of whole numbers. "
                f"Received: {sequence!r} at index {index}"
            )
        arrays.append(array)
    if not arrays:
        raise ValueError(f"`{name}` must hold at least one sequence. Received an empty list.")
    check_token_ids(arrays, 2**31)
    return arrays


def _matrix(token_ids):
    token_ids = np.asarray(token_ids)
    if token_ids.ndim != 2 or token_ids.dtype.kind not in "iu":
        raise ValueError(
            "`token_ids` must be a whole-number array of shape (rows, length). Received: "
            f"shape {token_ids.shape}, dtype {token_ids.dtype}"
        )
    return token_ids
