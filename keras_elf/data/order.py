"""In which order rows are served, divided among processes."""

import numpy as np

from keras_elf import checks


class RowOrder:
    """A new order of the rows for each epoch, which depends on the seed and the epoch alone.

    NumPy's permutation of all rows: 8 bytes a row, made once an epoch (seconds for 30 million
    rows). Unlike a shuffle buffer it mixes the whole corpus.

    Args:
        num_rows: int. How many rows there are.
        seed: int. Seed of the orders. Defaults to `0`.
        shuffle: bool. Whether there is an order at all, or the rows come as they lie. Defaults to
            `True`.
    """

    def __init__(self, num_rows, seed=0, shuffle=True):
        self.num_rows = checks.integer("num_rows", num_rows, minimum=1)
        self.seed = checks.integer("seed", seed, minimum=0)
        self.shuffle = bool(shuffle)
        self._known = None, None

    def rows(self, epoch, places):
        """The rows at some places of an epoch's order.

        Args:
            epoch: int. Number of the epoch.
            places: int array with values in `[0, num_rows)`, or a slice.

        Returns:
            int64 array, a row a place.
        """
        known, order = self._known
        if known != epoch:
            order = np.arange(self.num_rows)
            if self.shuffle:
                order = np.random.default_rng([self.seed, epoch]).permutation(self.num_rows)
            # Replaced whole: workers may be reading the old one.
            self._known = epoch, order
        return order[places]


class Shard:
    """One process's part of every epoch.

    Of the one order that all processes share, process `index` takes the places `index`,
    `index + count`, ...: together they serve the rows that one process alone would serve, each
    once, the same number of batches each.

    Args:
        shard: tuple `(index, count)`.
    """

    def __init__(self, shard):
        try:
            index, count = shard
        except (TypeError, ValueError):
            raise ValueError(
                f"`shard` must be a tuple (index, count). Received: {shard!r}"
            ) from None
        self.count = checks.integer("shard[1]", count, minimum=1)
        self.index = checks.integer("shard[0]", index, minimum=0, maximum=self.count - 1)

    def places(self, start, stop):
        """Places in the shared order of this process's places `start` to `stop`."""
        return np.arange(start, stop, dtype=np.int64) * self.count + self.index
