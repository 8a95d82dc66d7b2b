"""Who sees whom inside the text encoder."""

from keras import ops


def encoder_attention_mask(is_cond, is_valid, dropped=None, segments=None):
    """Attention mask of the encoder for sequences of a condition and a target.

    A condition row sees the condition columns that are valid; every other row, padding
    included, sees all valid columns. So a condition is encoded alike with and without its
    target, as sampling needs it, while a target may draw on its condition. In examples
    whose condition is dropped (label drop, for guidance on the condition) the rows outside
    the condition, padding included, see no condition column.

    A row that may see nothing (a dropped example with an empty target, padding in a
    segment of its own) is all `False`; the encoders give finite latents there.

    Args:
        is_cond: bool, int or float tensor `(batch, length)`. Nonzero at condition positions.
        is_valid: bool, int or float tensor `(batch, length)`. Nonzero where not padding.
        dropped: bool, int or float tensor `(batch,)`. Nonzero for the examples without
            their condition. Defaults to `None`: none.
        segments: integer tensor `(batch, length)`. Document number of each token in packed
            rows; tokens see their own document only. Defaults to `None`: one document.

    Returns:
        bool tensor `(batch, length, length)`; `[b, q, k]`: row q may see column k.

    Raises:
        ValueError: if a shape does not fit.

    Source: ELF, arXiv 2605.10938 (conditional generation, label drop).
    """
    is_cond, is_valid = ops.cast(is_cond, "bool"), ops.cast(is_valid, "bool")
    shape = tuple(is_valid.shape)
    if len(shape) != 2:
        raise ValueError(f"`is_valid` must have shape (batch, length). Received: {shape}")
    _check_shape("is_cond", is_cond, shape)
    row_cond, column_cond = is_cond[:, :, None], is_cond[:, None, :]
    visible = ops.logical_or(column_cond, ops.logical_not(row_cond))
    visible = ops.logical_and(visible, is_valid[:, None, :])
    if dropped is not None:
        dropped = ops.cast(dropped, "bool")
        _check_shape("dropped", dropped, shape[:1])
        hidden = ops.logical_and(dropped[:, None, None], ops.logical_not(row_cond))
        visible = ops.logical_and(visible, ops.logical_not(ops.logical_and(hidden, column_cond)))
    if segments is not None:
        segments = ops.convert_to_tensor(segments)
        _check_shape("segments", segments, shape)
        visible = ops.logical_and(visible, ops.equal(segments[:, :, None], segments[:, None, :]))
    return visible


def _check_shape(name, tensor, expected):
    received = tuple(tensor.shape)
    matches = len(received) == len(expected) and all(
        r == e or r is None or e is None for r, e in zip(received, expected, strict=True)
    )
    if not matches:
        raise ValueError(
            f"`{name}` must have shape {expected}, as `is_valid` has. Received: {received}"
        )
