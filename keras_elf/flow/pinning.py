"""Holding given positions (a condition) fixed while the rest flows."""

from keras import ops

from keras_elf.flow.path import align


def pin(z, condition, is_cond):
    """`condition` where `is_cond`, `z` elsewhere.

    Args:
        z: float tensor `(batch, length, width)`.
        condition: float tensor of the same shape; read only where `is_cond`.
        is_cond: bool or 0/1 tensor `(batch, length)`, or `None` for no condition.
    """
    if is_cond is None:
        return z
    return ops.where(align(is_cond, z) > 0.5, ops.cast(condition, z.dtype), z)


def clear(z, is_cond):
    """Zeros where `is_cond`, `z` elsewhere."""
    if is_cond is None:
        return z
    return ops.where(align(is_cond, z) > 0.5, ops.zeros_like(z), z)
