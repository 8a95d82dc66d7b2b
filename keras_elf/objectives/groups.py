"""Cutting a batch into groups of fixed share, within every device's block of rows."""

from keras import ops


def group_bounds(rows, shares):
    """Where to cut `rows` rows into three groups of given `shares`.

    Sizes are rounded, but every group gets at least one row.

    Args:
        rows: int, or an int tensor where the batch size is unknown until run time.
        shares: three floats above 0 that sum to 1.

    Returns:
        `(first cut, second cut)`, or `None` if a known number of rows is too small.
    """
    if isinstance(rows, int):
        if rows < len(shares):
            return None
        first = min(max(round(shares[0] * rows), 1), rows - 2)
        return first, min(max(round((shares[0] + shares[1]) * rows), first + 1), rows - 1)
    # A batch size unknown while tracing cannot steer Python: cuts become tensors, and a batch
    # of one or two rows goes without its first groups.
    count, zero = ops.cast(rows, "float32"), ops.zeros((), dtype="int32")
    first = ops.cast(ops.round(shares[0] * count), "int32")
    first = ops.minimum(ops.maximum(first, 1), ops.maximum(rows - 2, zero))
    second = ops.cast(ops.round((shares[0] + shares[1]) * count), "int32")
    return first, ops.minimum(ops.maximum(second, first + 1), ops.maximum(rows - 1, zero))


class RowGroups:
    """Takes groups of rows out of a batch and puts them back, block by block.

    A batch sharded over devices lies in `blocks` equal runs of rows. Each run is cut at
    the same places, so that taking a group moves no row to another device.

    Args:
        rows: int or int tensor. Rows in the batch.
        blocks: int. Number of runs; must divide `rows` (1 where the number is unknown).
        shares: three floats. Shares of the groups.
    """

    def __init__(self, rows, shares, blocks=1):
        if not isinstance(rows, int) or rows % blocks:
            blocks = 1
        self.rows, self.blocks = rows, blocks
        self.block_rows = rows // blocks if isinstance(rows, int) else rows
        self.bounds = group_bounds(self.block_rows, shares) if min(shares) > 0 else None

    @property
    def fit(self):
        """Whether every group has a share and can have a row."""
        return self.bounds is not None

    def take(self, x, group, last=None):
        """Rows of `group` (0, 1 or 2), or of `group` to `last`, of `x`: `(size, ...)`."""
        start, stop = self._span(group)[0], self._span(group if last is None else last)[1]
        if self.blocks == 1:
            return x[start:stop]
        tail = tuple(x.shape[1:])
        x = ops.reshape(x, (self.blocks, self.block_rows, *tail))[:, start:stop]
        return ops.reshape(x, (self.blocks * (stop - start), *tail))

    def join(self, parts):
        """Inverse of `take` for the tensors of groups that follow each other."""
        if self.blocks == 1:
            return ops.concatenate(parts, axis=0)
        tail = tuple(parts[0].shape[1:])
        blocked = [ops.reshape(p, (self.blocks, p.shape[0] // self.blocks, *tail)) for p in parts]
        return ops.reshape(ops.concatenate(blocked, axis=1), (-1, *tail))

    def shuffle(self, x, keys):
        """Rows of `x` in the order of their `keys`, `(rows,)` floats, within each block."""
        if self.blocks == 1:
            return ops.take(x, ops.argsort(keys), axis=0)
        order = ops.argsort(ops.reshape(keys, (self.blocks, self.block_rows)), axis=1)
        order = order + ops.arange(self.blocks, dtype=order.dtype)[:, None] * self.block_rows
        return ops.take(x, ops.reshape(order, (-1,)), axis=0)

    def _span(self, group):
        first, second = self.bounds
        return ((0, first), (first, second), (second, self.block_rows))[group]
