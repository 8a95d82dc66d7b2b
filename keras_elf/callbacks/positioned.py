"""Data that can start in the middle of an epoch."""

import zlib

import keras
import numpy as np

from keras_elf.data import TokenBatches

SAMPLED_ROWS = 1024


def positionable(x):
    """Whether any batch of any epoch of `x` can be reached."""
    if isinstance(x, TokenBatches):
        return True
    return (
        isinstance(x, keras.utils.PyDataset)
        and callable(getattr(x, "skip_to", None))
        and hasattr(x, "position")
        and x.num_batches is not None
    )


class PositionedBatches(keras.utils.PyDataset):
    """Batches of another dataset, whose epochs are set from outside and may start late.

    Keras asks a dataset for its length before the first epoch alone. In an epoch that starts
    late the batches therefore run out early, which ends it.

    Args:
        dataset: what `positionable` accepts. After `skip_to(epoch, 0)`, `dataset[i]` must be
            batch i of that epoch.
    """

    def __init__(self, dataset):
        # Keras's workers would fetch batches of an epoch before it is known where it starts.
        super().__init__(workers=1)
        self.dataset = dataset
        self.skip = 0
        self.ended = False

    @property
    def length(self):
        """Batches in a whole epoch."""
        return self.dataset.num_batches

    @property
    def start(self):
        """Epoch and batch at which Keras would begin, were the dataset handed to it directly."""
        # Keras tells a dataset that an epoch has ended before the first one begins.
        if isinstance(self.dataset, TokenBatches):
            return self.dataset.epoch + 1, 0
        place = self.dataset.position
        return place["epoch"], place.get("batch", 0)

    @property
    def num_batches(self):
        return self.length - self.skip

    def __getitem__(self, index):
        return self.dataset[index + self.skip]

    def on_epoch_end(self):
        """Called by Keras where it has run through an epoch, but not where it was stopped."""
        self.ended = True

    def start_epoch(self, epoch, skip=0):
        """Serve batches `skip` and later of an epoch."""
        self._go_to(epoch)
        self.skip, self.ended = skip, False

    def finish_epoch(self, epoch):
        """Leave the dataset where the next run is to begin."""
        if isinstance(self.dataset, TokenBatches):
            self.dataset.epoch = epoch + 1
        else:
            self._go_to(epoch + 1)

    def batch_of(self, epoch, index):
        """A batch by its place; the dataset goes to that epoch."""
        self._go_to(epoch)
        return self.dataset[index]

    def fingerprint(self):
        """What tells these data from others: a dict of what JSON can hold."""
        given = getattr(self.dataset, "fingerprint", None)
        if given is not None:
            return {"fingerprint": str(given() if callable(given) else given)}
        if callable(getattr(self.dataset, "state", None)):
            place = self.dataset.position
            return {k: v for k, v in self.dataset.state().items() if k not in place}
        found = {"kind": type(self.dataset).__name__, "batches": self.length}
        if isinstance(self.dataset, TokenBatches):
            for name in ("num_rows", "batch_size", "shuffle", "seed", "drop_remainder"):
                found[name] = getattr(self.dataset, name)
            found["rows"] = _checksum(self.dataset.arrays)
        return found

    def _go_to(self, epoch):
        if isinstance(self.dataset, TokenBatches):
            self.dataset.epoch = epoch
        else:
            self.dataset.skip_to(epoch, 0)


def _checksum(arrays):
    """A number made of the arrays' rows, of at most about a thousand of them."""
    total = 0
    for name in sorted(arrays):
        array = arrays[name]
        rows = array[:: max(1, len(array) // SAMPLED_ROWS)]
        label = f"{name} {array.shape} {array.dtype}"
        total = zlib.crc32(np.ascontiguousarray(rows).tobytes(), zlib.crc32(label.encode(), total))
    return total
