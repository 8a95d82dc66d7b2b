"""Shuffled batches of fixed size, for `fit` on every backend."""

import zlib

import numpy as np

from keras_elf import checks
from keras_elf.data.order import RowOrder
from keras_elf.data.resumable import ResumableDataset

SAMPLED_ROWS = 1024


class TokenBatches(ResumableDataset):
    """Serves rows as dicts of NumPy arrays, in batches of one size and in a seeded order.

    A batch of another size would make a compiled training step compile again, so the rows that
    do not fill a last batch are left out of the epoch; as every epoch has an order of its own,
    they are others each time. An epoch's order depends on `seed` and the number of the epoch alone.

    `ELFGenerator.fit` takes it as it is; Keras's own `fit` needs `shuffle=False`, or it shuffles
    the batches once more, by Python's global random state.

    Args:
        arrays: dict of arrays with equal first dimensions, the rows, as
            `keras_elf.data.encode_texts` gives them.
        batch_size: int. Number of rows in a batch.
        shuffle: bool. Whether each epoch has a new order. Defaults to `True`.
        seed: int. Seed of the orders. Defaults to `0`.
        drop_remainder: bool. Whether the rows that do not fill a last batch are left out. If
            `False`, the last batch may be smaller. Defaults to `True`.
        **kwargs: `workers`, `use_multiprocessing` and `max_queue_size` of
            `keras.utils.PyDataset`.

    Raises:
        ValueError: if the arrays differ in length, or there are fewer rows than one batch.

    Example:

    ```python
    rows = keras_elf.data.encode_texts(verses, tokenizer, sequence_length=48)
    batches = keras_elf.data.TokenBatches(rows, batch_size=64)
    batches[0]["token_ids"].shape  # (64, 48)
    ```
    """

    def __init__(self, arrays, batch_size, *, shuffle=True, seed=0, drop_remainder=True, **kwargs):
        super().__init__(**kwargs)
        self.arrays = _rows(arrays)
        self.num_rows = len(next(iter(self.arrays.values())))
        self.batch_size = checks.integer("batch_size", batch_size, minimum=1)
        self.shuffle = bool(shuffle)
        self.seed = checks.integer("seed", seed, minimum=0)
        self.drop_remainder = bool(drop_remainder)
        if self.drop_remainder and self.num_rows < self.batch_size:
            raise ValueError(
                f"There are fewer rows ({self.num_rows}) than one batch holds "
                f"(`batch_size={self.batch_size}`). Use a smaller `batch_size`, more text, or "
                "`drop_remainder=False`."
            )
        full, rest = divmod(self.num_rows, self.batch_size)
        self.batches_per_epoch = full if self.drop_remainder or not rest else full + 1
        self._order = RowOrder(max(1, self.num_rows), self.seed, self.shuffle)

    def batch_of(self, epoch, batch):
        """A batch by its epoch and its number in it."""
        places = slice(batch * self.batch_size, (batch + 1) * self.batch_size)
        rows = self._order.rows(epoch, places)
        return {name: array[rows] for name, array in self.arrays.items()}

    def fingerprint(self):
        """Settings and a checksum of at most about a thousand of the rows."""
        names = ("num_rows", "batch_size", "shuffle", "seed", "drop_remainder")
        return {
            "kind": type(self).__name__,
            "batches": self.batches_per_epoch,
            **{name: getattr(self, name) for name in names},
            "rows": _checksum(self.arrays),
        }


def _checksum(arrays):
    total = 0
    for name in sorted(arrays):
        array = arrays[name]
        rows = array[:: max(1, len(array) // SAMPLED_ROWS)]
        label = f"{name} {array.shape} {array.dtype}"
        total = zlib.crc32(np.ascontiguousarray(rows).tobytes(), zlib.crc32(label.encode(), total))
    return total


def _rows(arrays):
    """The arrays as NumPy, checked to be at least one and equally long."""
    if not isinstance(arrays, dict) or not arrays:
        raise ValueError(
            "`arrays` must be a dict of arrays, such as `keras_elf.data.encode_texts` returns. "
            f"Received: {type(arrays).__name__}"
        )
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    lengths = {name: array.shape[0] if array.ndim else None for name, array in arrays.items()}
    if len(set(lengths.values())) > 1 or None in lengths.values():
        raise ValueError(
            f"`arrays` must have the same first dimension, one entry a row. Received: {lengths}"
        )
    return arrays
