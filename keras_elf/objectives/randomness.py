"""Draws from a seed, or from the numbers of the rows where an evaluation asks for it."""

import contextlib

import keras
from keras import ops

from keras_elf import flow


def normal(shape, seed):
    """float32 standard normals of `shape`, whose first axis are the rows of the batch.

    Args:
        shape: tuple of ints or int tensors.
        seed: int, `keras.random.SeedGenerator`, or a `RowSeedGenerator` within `rows`: then
            each row gets numbers of its own that do not depend on the batch it is in.
    """
    if row_numbers(seed) is None:
        return keras.random.normal(shape, dtype="float32", seed=seed)
    return flow.row_normal(row_numbers(seed), shape[1:], *seed.next_stream())


def uniform(shape, seed):
    """float32 uniforms in [0, 1), with the arguments of `normal`."""
    if row_numbers(seed) is None:
        return keras.random.uniform(shape, dtype="float32", seed=seed)
    return flow.row_uniform(row_numbers(seed), shape[1:], *seed.next_stream())


def row_numbers(seed):
    """int32 `(batch,)` numbers of the rows that `seed` draws for, or `None`."""
    return getattr(seed, "current_rows", None)


class RowSeedGenerator(keras.random.SeedGenerator):
    """A seed generator that counts the rows of a data set and can draw for each by its number.

    `normal` and `uniform` of this module use the numbers; functions of `keras.random` get a
    seed of the batch, so that objectives which know nothing of rows work, too. The state holds
    the seed and the number of rows so far.
    """

    current_rows = None
    _stream = 0

    @contextlib.contextmanager
    def rows(self, batch):
        """Within the block draws are for the next `batch` rows: an int or an int tensor."""
        state = self.state
        seen = state.value[1]
        batch_size = ops.cast(batch, state.dtype)
        self.current_rows = ops.arange(batch, dtype="int32") + ops.cast(seen, "int32")
        self._seed, self._stream = state.value[0] * 1, 0
        state.assign(ops.stack([self._seed, seen + batch_size]))
        try:
            yield self
        finally:
            # What belongs to a trace must not outlive it.
            self.current_rows = self._seed = None

    def next_stream(self):
        """`(seed, number of the next stream)` of a draw within `rows`."""
        self._stream += 1
        return ops.cast(self._seed, "int32"), self._stream

    def next(self, *args, **kwargs):
        if self.current_rows is None:
            return super().next(*args, **kwargs)
        # The count of rows stays as it is; the draws of a batch differ by their stream.
        self._stream += 1
        return self.state.value + ops.cast([0x10000 * self._stream, 0], self.state.dtype)
