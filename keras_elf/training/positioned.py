"""Data that can start in the middle of an epoch."""

import keras


def positionable(x):
    """Whether any batch of any epoch of `x` can be reached; see `ResumableDataset`."""
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
        dataset: what `positionable` accepts.

    Attributes:
        start: tuple of int. Epoch and batch at which the dataset stood.
        length: int. Batches in a whole epoch.
        ended: bool. Whether Keras has run through the epoch, and was not stopped in it.
    """

    def __init__(self, dataset):
        # Keras's workers would fetch batches of an epoch before it is known where it starts.
        super().__init__(workers=1)
        self.dataset = dataset
        place = dataset.position
        self.start = place["epoch"], place.get("batch", 0)
        dataset.skip_to(self.start[0], 0)
        self.length = dataset.num_batches
        self.skip = 0
        self.ended = False

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
        self.dataset.skip_to(epoch, 0)
        self.skip, self.ended = skip, False

    def leave(self, epoch, batch=0):
        """Leave the dataset where the next run is to begin."""
        self.dataset.skip_to(epoch, batch)

    def batch_of(self, epoch, index):
        """A batch by its place; the dataset goes to that epoch."""
        self.dataset.skip_to(epoch, 0)
        return self.dataset[index]

    def fingerprint(self):
        """What tells these data from others: a dict of what JSON can hold."""
        given = getattr(self.dataset, "fingerprint", None)
        given = given() if callable(given) else given
        if given is None:
            return {"kind": type(self.dataset).__name__, "batches": self.length}
        return given if isinstance(given, dict) else {"fingerprint": str(given)}
