"""The batches of a `TextDataset` as the data sets of other libraries."""

from keras_elf import checks


class Steps:
    """Batches by their number from a dataset's position on: what loaders with random access want.

    Args:
        dataset: `TextDataset`.
        num_epochs: int. Up to the end of so many epochs from the position's.
    """

    def __init__(self, dataset, num_epochs):
        checks.integer("num_epochs", num_epochs, minimum=1)
        position, length = dataset.position, dataset.batches_per_epoch
        self.dataset = dataset
        self.first = position["epoch"] * length + position["batch"]
        self.number = (position["epoch"] + num_epochs) * length - self.first

    def __len__(self):
        return self.number

    def __getitem__(self, index):
        if not 0 <= index < self.number:
            raise IndexError(f"Batch {index} is out of range [0, {self.number}).")
        return self.dataset.batch_at(self.first + int(index))


def as_tf(dataset, num_epochs):
    """A `tf.data.Dataset` over `Steps`."""
    import tensorflow as tf

    steps = Steps(dataset, num_epochs)
    signature = {
        name: tf.TensorSpec(_static(array.shape, dataset), array.dtype)
        for name, array in steps[0].items()
    }

    def batches():
        for index in range(len(steps)):
            yield steps[index]

    made = tf.data.Dataset.from_generator(batches, output_signature=signature)
    return made.apply(tf.data.experimental.assert_cardinality(len(steps))).prefetch(2)


def as_grain(dataset, num_epochs):
    """A `grain.MapDataset` over `Steps`."""
    import grain

    return grain.MapDataset.source(Steps(dataset, num_epochs))


def as_torch(dataset, num_epochs, **kwargs):
    """A `DataLoader` over `Steps`."""
    import torch

    checks.no_unknown(
        "as_torch",
        kwargs,
        ("num_workers", "prefetch_factor", "persistent_workers", "pin_memory", "timeout",
         "multiprocessing_context", "worker_init_fn"),
    )  # fmt: skip
    return torch.utils.data.DataLoader(_Tuples(dataset, num_epochs), batch_size=None, **kwargs)


class _Tuples(Steps):
    """Batches as tuples of one: of a bare dict Keras keeps the names alone, except on PyTorch."""

    def __getitem__(self, index):
        return (super().__getitem__(index),)


def _static(shape, dataset):
    """The shape of a batch; with a smaller last batch the number of rows is open."""
    even = (
        len(dataset.rows) // dataset.shard.count >= dataset.batches_per_epoch * dataset.batch_size
    )
    return shape if even else (None, *shape[1:])
