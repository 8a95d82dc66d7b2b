"""Batches for `fit`, at any place of any epoch: the same order on every backend and machine."""

import keras

from keras_elf import checks
from keras_elf.data import adapters
from keras_elf.data.order import RowOrder, Shard
from keras_elf.data.prefetch import prefetch


class TextDataset(keras.utils.PyDataset):
    """Shuffled batches of one size that can go on exactly where a run was cut off.

    Made by `keras_elf.data.load_dataset`. Which rows a batch holds depends on `seed`, the epoch
    and the batch's number alone, never on what was read before, on prefetching or on workers.

    `fit` takes it as it is; pass `shuffle=False`, since Keras would shuffle the batches once
    more, by Python's global random state. For other loaders there are `as_tf`, `as_grain` and
    `as_torch`.

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
        has_own_order: `True`: batches are to be taken in their order.

    Raises:
        ValueError: if there are fewer rows than one batch of every process.
    """

    has_own_order = True

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
        self._epoch = self._start = self._used = 0
        self._running = False

    def batch_at(self, step):
        """The batch of a step, counted over all epochs from the first one's first batch."""
        epoch, batch = divmod(checks.integer("step", step, minimum=0), self.batches_per_epoch)
        start = batch * self.batch_size
        stop = min(start + self.batch_size, len(self.rows) // self.shard.count)
        return self.rows.batch(self.order.rows(epoch, self.shard.places(start, stop)))

    def __len__(self):
        # Keras asks for the length once a `fit`, and again, inside an epoch, for its iterator.
        return self.batches_per_epoch - (self._start if self._running else 0)

    def __getitem__(self, index):
        if not 0 <= index < self.batches_per_epoch:
            raise IndexError(f"Batch {index} is out of range [0, {self.batches_per_epoch}).")
        if self._start + index >= self.batches_per_epoch:
            # Workers start before they can know that the epoch is shortened. Keras drops a None,
            # where it would serve another surplus batch in the next epoch.
            return None
        return self.batch_at(self._epoch * self.batches_per_epoch + self._start + index)

    def __iter__(self):
        first = self._epoch * self.batches_per_epoch
        for batch in range(self._start, self.batches_per_epoch):
            yield self.batch_at(first + batch)

    def on_epoch_begin(self):
        """Called by Keras at the start of an epoch."""
        self._running, self._used = True, 0

    def on_epoch_end(self):
        """Go on to the next epoch, if one was begun: Keras calls this before the first, too."""
        if self._running:
            self.skip_to(self._epoch + 1, 0)

    def note_used(self, number):
        """Tell how many batches of the epoch that is running were trained on."""
        self._used = checks.integer("number", number, minimum=0)

    @property
    def position(self):
        """The next batch to train on, as a dict of `epoch` and `batch`.

        What was fetched ahead does not count. Inside `fit` only the training loop knows what was
        used: `keras_elf.data.PositionTracker` tells it.
        """
        epoch, batch = divmod(
            self._epoch * self.batches_per_epoch + self._start + self._used, self.batches_per_epoch
        )
        return {"epoch": epoch, "batch": batch}

    def skip_to(self, epoch, batch=0):
        """Go on from a batch of an epoch; the epoch's batches before it are left out.

        Args:
            epoch: int. Number of the epoch, from 0.
            batch: int. Number of the batch in it, from 0. Defaults to `0`.
        """
        epoch = checks.integer("epoch", epoch, minimum=0)
        batch = checks.integer("batch", batch, minimum=0, maximum=self.batches_per_epoch)
        extra, batch = divmod(batch, self.batches_per_epoch)
        self._epoch, self._start, self._used, self._running = epoch + extra, batch, 0, False

    def state(self):
        """The position and what it depends on, to be kept as JSON and given to `restore`."""
        return {
            **self.position,
            "rows": len(self.rows),
            "batch_size": self.batch_size,
            "shards": self.shard.count,
            "seed": self.order.seed,
            "shuffle": self.order.shuffle,
        }

    def restore(self, state):
        """Go on from a `state()`.

        Raises:
            ValueError: if the state is that of other data, or of another order.
        """
        own = self.state()
        if not isinstance(state, dict) or set(state) != set(own):
            raise ValueError(f"`state` must have the keys {list(own)}. Received: {state!r:.120}")
        for name in ("rows", "batch_size", "shards", "seed", "shuffle"):
            if state[name] != own[name]:
                raise ValueError(
                    f"`state` belongs to another dataset: its {name} is {state[name]!r}, here it "
                    f"is {own[name]!r}. Load the same data with the same settings."
                )
        self.skip_to(state["epoch"], state["batch"])

    def stream(self, num_epochs=None, *, buffer_size=2):
        """Iterate from the position on, over epoch ends, fetching ahead in the background.

        For loops of one's own. `position` moves with what was taken, not with what was fetched.

        Args:
            num_epochs: int. Stop at the end of so many epochs, counted from epoch 0. Defaults to
                `None`: never.
            buffer_size: int. How many batches may wait. Defaults to `2`.
        """
        step = self._epoch * self.batches_per_epoch + self._start + self._used
        last = None
        if num_epochs is not None:
            last = checks.integer("num_epochs", num_epochs, minimum=1) * self.batches_per_epoch
        for batch in prefetch(_steps(self, step, last), buffer_size):
            step += 1
            self.skip_to(*divmod(step, self.batches_per_epoch))
            yield batch

    def as_tf(self, num_epochs=1):
        """A `tf.data.Dataset` of the batches from the position on, in their order.

        For several epochs: `fit(data.as_tf(5), epochs=5, steps_per_epoch=len(data))`.

        Args:
            num_epochs: int. How many epochs it holds, one after the other. Defaults to `1`.
        """
        return adapters.as_tf(self, num_epochs)

    def as_grain(self, num_epochs=1):
        """A `grain.MapDataset` of the batches; the argument as in `as_tf`."""
        return adapters.as_grain(self, num_epochs)

    def as_torch(self, num_epochs=1, **kwargs):
        """A `torch.utils.data.DataLoader` of the batches, each a dict in a tuple of one.

        Not on PyTorch alone, `fit` takes it on every backend; it needs the tuple for that.

        Args:
            num_epochs: int. As in `as_tf`.
            **kwargs: `num_workers` and others of `DataLoader` that leave batches and order alone.
        """
        return adapters.as_torch(self, num_epochs, **kwargs)


class PositionTracker(keras.callbacks.Callback):
    """Tells a `TextDataset` which batches `fit` has trained on, so that its `position` is exact.

    Put it before the callbacks that keep the position.

    Args:
        dataset: `TextDataset`.
    """

    def __init__(self, dataset):
        super().__init__()
        self.dataset = dataset

    def on_epoch_begin(self, epoch, logs=None):
        self.dataset.note_used(0)

    def on_train_batch_end(self, batch, logs=None):
        self.dataset.note_used(batch + 1)


def _steps(dataset, step, last):
    while last is None or step < last:
        yield dataset.batch_at(step)
        step += 1
