"""The one protocol for data that can go on where a run was cut off."""

import concurrent.futures

import keras

from keras_elf import checks


class ResumableDataset(keras.utils.PyDataset):
    """Batches that can be reached by the number of their epoch and their place in it.

    `TokenBatches` and `TextDataset` are two. One of your own defines three things, and
    `ELFGenerator.fit` resumes it, in its own order and on every backend:

    ```python
    class Squares(keras_elf.data.ResumableDataset):
        batches_per_epoch = 100

        def batch_of(self, epoch, batch):
            rng = np.random.default_rng([epoch, batch])
            return {"token_ids": rng.integers(0, 10, (32, 64)) ** 2}

        def fingerprint(self):
            return {"kind": "squares", "seed": 0}
    ```

    What a batch holds may depend on nothing but its epoch and number: not on what was read
    before, on prefetching or on workers. `fit` takes the batches in their order.

    A `keras.utils.PyDataset` that does not derive from this class can be resumed too, if it has
    `position` (a dict with `epoch` and `batch`) and `skip_to(epoch, batch)`, and if `dataset[i]`
    is batch i of an epoch after `skip_to(epoch, 0)`; a `fingerprint()` is optional then.

    Args:
        **kwargs: `workers`, `use_multiprocessing` and `max_queue_size` of
            `keras.utils.PyDataset`.

    Attributes:
        batches_per_epoch: int. Batches in a whole epoch.
        position: dict of `epoch` and `batch`: the next batch to train on.
    """

    batches_per_epoch = None
    _epoch = _start = _used = 0
    _running = False

    def batch_of(self, epoch, batch):
        """A batch of an epoch.

        Args:
            epoch: int. Number of the epoch, from 0.
            batch: int. Number of the batch in it, from 0.

        Returns:
            dict of NumPy arrays with equal first dimensions.
        """
        raise NotImplementedError(f"{type(self).__name__} must define `batch_of(epoch, batch)`.")

    def fingerprint(self):
        """What tells these data and their order from others: a dict of what JSON can hold."""
        raise NotImplementedError(f"{type(self).__name__} must define `fingerprint()`.")

    def batch_at(self, step):
        """The batch of a step, counted over all epochs from the first one's first batch."""
        return self.batch_of(*divmod(checks.integer("step", step, minimum=0), self._length()))

    def __len__(self):
        # Keras asks for the length once a `fit`, and again, inside an epoch, for its iterator.
        return self._length() - (self._start if self._running else 0)

    def __getitem__(self, index):
        if not 0 <= index < self._length():
            raise IndexError(f"Batch {index} is out of range [0, {self._length()}).")
        if self._start + index >= self._length():
            # Workers start before they can know that the epoch is shortened. Keras drops a None,
            # where it would serve another surplus batch in the next epoch.
            return None
        return self.batch_of(self._epoch, self._start + index)

    def __iter__(self):
        epoch, start = self._epoch, self._start
        for batch in range(start, self._length()):
            yield self.batch_of(epoch, batch)

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

        What was fetched ahead does not count. Inside Keras's own `fit` only the training loop
        knows what was used: `keras_elf.data.PositionTracker` tells it.
        """
        more, batch = divmod(self._start + self._used, self._length())
        return {"epoch": self._epoch + more, "batch": batch}

    def skip_to(self, epoch, batch=0):
        """Go on from a batch of an epoch; the epoch's batches before it are left out.

        Args:
            epoch: int. Number of the epoch, from 0.
            batch: int. Number of the batch in it, from 0. Defaults to `0`.
        """
        epoch = checks.integer("epoch", epoch, minimum=0)
        batch = checks.integer("batch", batch, minimum=0, maximum=self._length())
        more, batch = divmod(batch, self._length())
        self._epoch, self._start, self._used, self._running = epoch + more, batch, 0, False

    def state(self):
        """The position and the fingerprint, to be kept as JSON and given to `restore`."""
        return {**self.position, **self.fingerprint()}

    def restore(self, state):
        """Go on from a `state()`.

        Raises:
            ValueError: if the state is that of other data, or of another order.
        """
        own = self.state()
        if not isinstance(state, dict) or set(state) != set(own):
            raise ValueError(f"`state` must have the keys {list(own)}. Received: {state!r:.120}")
        for name, value in self.fingerprint().items():
            if state[name] != value:
                raise ValueError(
                    f"`state` belongs to another dataset: its {name} is {state[name]!r}, here it "
                    f"is {value!r}. Load the same data with the same settings."
                )
        self.skip_to(state["epoch"], state["batch"])

    def stream(self, num_epochs=None):
        """Iterate from the position on, over epoch ends; a thread makes the next batch meanwhile.

        For loops of one's own. `position` moves with what was taken, not with what was made.

        Args:
            num_epochs: int. Stop at the end of so many epochs, counted from epoch 0. Defaults to
                `None`: never.

        Yields:
            dict of NumPy arrays, as `batch_of` makes them.
        """
        place, length = self.position, self._length()
        step, last = place["epoch"] * length + place["batch"], None
        if num_epochs is not None:
            last = checks.integer("num_epochs", num_epochs, minimum=1) * length
        with concurrent.futures.ThreadPoolExecutor(1, "keras_elf_stream") as thread:
            following = thread.submit(self.batch_at, step)
            while last is None or step < last:
                batch = following.result()
                step += 1
                if step != last:
                    following = thread.submit(self.batch_at, step)
                self.skip_to(*divmod(step, length))
                yield batch

    def _length(self):
        return checks.integer("batches_per_epoch", self.batches_per_epoch, minimum=1)


class PositionTracker(keras.callbacks.Callback):
    """Tells a dataset which batches Keras's `fit` has trained on: its `position` is then exact.

    For models of one's own; put it before the callbacks that keep the position. The callbacks of
    `keras_elf` do without.

    Args:
        dataset: `ResumableDataset`.
    """

    def __init__(self, dataset):
        super().__init__()
        self.dataset = dataset

    def on_epoch_begin(self, epoch, logs=None):
        self.dataset.note_used(0)

    def on_train_batch_end(self, batch, logs=None):
        self.dataset.note_used(batch + 1)
