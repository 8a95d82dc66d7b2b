"""Batches for `fit`, at any place of any epoch: the same order on every backend and machine."""

from keras_elf import checks
from keras_elf.data.order import RowOrder, Shard
from keras_elf.data.resumable import ResumableDataset


class TextDataset(ResumableDataset):
    """Shuffled batches of one size that can go on exactly where a run was cut off.

    Made by `keras_elf.data.load_dataset`. Which rows a batch holds depends on `seed`, the epoch
    and the batch's number alone, never on what was read before, on prefetching or on workers.

    `ELFGenerator.fit` takes it as it is; Keras's own `fit` needs `shuffle=False`, or it shuffles
    the batches once more, by Python's global random state. Loaders of other libraries take it as
    a source of finished batches: `grain.MapDataset.source(dataset)`, or
    `torch.utils.data.DataLoader(dataset, batch_size=None)`.

    Args:
        rows: an object with a length and `batch(rows)`, which gives rows by their numbers as a
            dict of arrays.
        batch_size: int. Rows in a batch of this process.
        seed: int. Seed of the orders. Defaults to `0`.
        shuffle: bool. Whether each epoch has a new order. Defaults to `True`.
        drop_remainder: bool. Whether rows that do not fill a batch are left out of the epoch.
            Defaults to `True`.
        shard: tuple `(index, count)`. This process's part. Defaults to `(0, 1)`: all.
        **kwargs: `workers`, `use_multiprocessing` and `max_queue_size` of
            `keras.utils.PyDataset`.

    Attributes:
        position: dict of `epoch` and `batch`: the next batch to train on.

    Raises:
        ValueError: if there are fewer rows than one batch of every process.
    """

    def __init__(
        self,
        rows,
        batch_size,
        *,
        seed=0,
        shuffle=True,
        drop_remainder=True,
        shard=(0, 1),
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.rows = rows
        self.batch_size = checks.integer("batch_size", batch_size, minimum=1)
        self.shard = Shard(shard)
        self.order = RowOrder(max(1, len(rows)), seed, shuffle)
        full, rest = divmod(len(rows) // self.shard.count, self.batch_size)
        if not drop_remainder:
            if self.shard.count > 1:
                raise ValueError("`drop_remainder` must be True where `shard` divides the rows.")
            full += 1 if rest else 0
        if not full:
            raise ValueError(
                f"There are fewer rows ({len(rows)}) than one batch of each process takes "
                f"({self.shard.count} x `batch_size={self.batch_size}`). Use a smaller "
                "`batch_size`, more text, or `drop_remainder=False`."
            )
        self.batches_per_epoch = full

    def batch_of(self, epoch, batch):
        """A batch by its epoch and its number in it."""
        start = batch * self.batch_size
        stop = min(start + self.batch_size, len(self.rows) // self.shard.count)
        return self.rows.batch(self.order.rows(epoch, self.shard.places(start, stop)))

    def fingerprint(self):
        """What the batches depend on, their text apart: a dict of what JSON can hold."""
        return {
            "rows": len(self.rows),
            "batch_size": self.batch_size,
            "shards": self.shard.count,
            "seed": self.order.seed,
            "shuffle": self.order.shuffle,
        }
