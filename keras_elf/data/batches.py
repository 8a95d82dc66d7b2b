"""Shuffled batches of fixed size, for `fit` on every backend."""

import keras
import numpy as np

from keras_elf import checks


class TokenBatches(keras.utils.PyDataset):
    """Serves rows as dicts of NumPy arrays, in batches of one size and in a seeded order.

    A batch of another size would make a compiled training step compile again, so the rows that
    do not fill a last batch are left out of the epoch; as every epoch has an order of its own,
    they are others each time. An epoch's order depends on `seed` and `epoch` alone: setting
    `epoch` resumes a run where it stood.

    `fit` shuffles the order of a dataset's batches once more, by Python's global random state:
    pass `fit(..., shuffle=False)` where the very order of the batches matters.

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
        self.epoch = 0

    @property
    def epoch(self):
        """Number of the epoch being served; it decides the order of the rows."""
        return self._epoch

    @epoch.setter
    def epoch(self, value):
        self._epoch = checks.integer("epoch", value, minimum=0)
        if self.shuffle:
            rng = np.random.default_rng([self.seed, self._epoch])
            self._order = rng.permutation(self.num_rows)
        else:
            self._order = np.arange(self.num_rows)

    def __len__(self):
        full, rest = divmod(self.num_rows, self.batch_size)
        return full if self.drop_remainder or not rest else full + 1

    def __getitem__(self, index):
        if not 0 <= index < len(self):
            raise IndexError(f"Batch {index} is out of range [0, {len(self)}).")
        rows = self._order[index * self.batch_size : (index + 1) * self.batch_size]
        return {name: array[rows] for name, array in self.arrays.items()}

    def on_epoch_end(self):
        """Go on to the next epoch's order."""
        self.epoch += 1


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
