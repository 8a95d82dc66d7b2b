"""In which order rows are served: a permutation in constant memory, divided among processes."""

import numpy as np

from keras_elf import checks

_ROUNDS = 6


class RowOrder:
    """A new order of the rows for each epoch, known at every place without those before it.

    The permutation is a Feistel network over the smallest even number of bits that holds all
    numbers, walked until it lands on one that is in use. So a place far into an epoch costs what
    the first costs, and no list of billions of numbers is ever made. Unlike a shuffle buffer it
    mixes the whole corpus.

    Args:
        num_rows: int. How many rows there are.
        seed: int. Seed of the orders. Defaults to `0`.
        shuffle: bool. Whether there is an order at all, or the rows come as they lie. Defaults to
            `True`.
    """

    def __init__(self, num_rows, seed=0, shuffle=True):
        self.num_rows = checks.integer("num_rows", num_rows, minimum=1, maximum=2**48)
        self.seed = checks.integer("seed", seed, minimum=0)
        self.shuffle = bool(shuffle)
        self._half = max(1, (int(num_rows - 1).bit_length() + 1) // 2)
        self._keys = {}

    def rows(self, epoch, places):
        """The rows at some places of an epoch's order.

        Args:
            epoch: int. Number of the epoch.
            places: int array with values in `[0, num_rows)`.

        Returns:
            int64 array of the shape of `places`.
        """
        places = np.asarray(places, dtype=np.int64)
        if not self.shuffle:
            return places
        keys = self._round_keys(epoch)
        rows = self._mixed(places.astype(np.uint64), keys)
        while (outside := rows >= self.num_rows).any():
            rows[outside] = self._mixed(rows[outside], keys)
        return rows.astype(np.int64)

    def _round_keys(self, epoch):
        keys = self._keys.get(epoch)
        if keys is None:
            keys = np.random.SeedSequence([self.seed, epoch]).generate_state(_ROUNDS, np.uint64)
            self._keys = {epoch: keys}  # replaced whole: threads may be reading the old one
        return keys

    def _mixed(self, values, keys):
        half, mask = np.uint64(self._half), np.uint64(2**self._half - 1)
        left, right = values >> half, values & mask
        for key in keys:
            left, right = right, left ^ (_hash(right + key) & mask)
        return (left << half) | right


def _hash(x):
    """The finaliser of SplitMix64: every bit of the result depends on every bit of `x`."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


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
