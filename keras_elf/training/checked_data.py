"""Datasets of every library, with each batch checked before it goes to the device."""

import contextlib

import keras

from keras_elf.training.batch_checks import without_targets

EMPTY = "The dataset is empty: it gave no batch. `x` must hold at least one."


def checked(check, x):
    """`x` as a dataset of the same kind whose batches pass through `check`.

    Args:
        check: `BatchCheck`.
        x: `keras.utils.PyDataset`, `tf.data.Dataset`, grain dataset, PyTorch `DataLoader`, or
            any iterator of batches.

    Raises:
        ValueError: for an empty dataset, and for a kind that Keras does not take.
    """
    if isinstance(x, keras.utils.PyDataset):
        return CheckedBatches(check, x)
    # By their names: none of these libraries need be there.
    kinds = {(cls.__name__, cls.__module__.partition(".")[0]) for cls in type(x).__mro__}
    if ("DatasetV2", "tensorflow") in kinds:
        return _checked_tf(check, x)
    if ("DataLoader", "torch") in kinds:
        return _checked_loader(check, x)
    if {("MapDataset", "grain"), ("IterDataset", "grain")} & kinds:
        return x.map_with_index(lambda number, batch: without_targets(check(batch, number)))
    if any(name.startswith("Distributed") and owner == "tensorflow" for name, owner in kinds):
        return x  # Spread over devices already: its batches are not here to be looked at.
    if hasattr(x, "__next__"):
        return _checked_iterator(check, x)
    raise ValueError(
        "`x` must be text, token ids, a dict of arrays, a keras.utils.PyDataset, a "
        "tf.data.Dataset, a grain MapDataset or IterDataset, a PyTorch DataLoader or an iterator "
        f"of batches. Received: {type(x).__module__}.{type(x).__name__}"
    )


@contextlib.contextmanager
def own_errors(*checks):
    """Within the block the error of a check is raised as it is, and an empty dataset is one."""
    checks = [check for check in checks if check is not None]
    try:
        yield
    except Exception as error:
        for check in checks:
            # TensorFlow raises an error of its own, with that of Python somewhere in its text.
            if check.error is not None and check.error is not error:
                if str(check.error) in str(error):
                    raise check.error from None
            if not check.batches and _tells_of_no_batch(error):
                raise ValueError(EMPTY) from None
        raise
    if checks and not checks[0].batches:
        raise ValueError(EMPTY)


def _tells_of_no_batch(error):
    # What Keras's loop and its adapter of grain end in where no batch came.
    return isinstance(error, (UnboundLocalError, StopIteration)) or "at least one structure" in str(
        error
    )


class CheckedBatches(keras.utils.PyDataset):
    """Batches of another `PyDataset`, checked; its length, epochs and workers are the other's."""

    def __init__(self, check, dataset):
        super().__init__(
            workers=dataset.workers,
            use_multiprocessing=dataset.use_multiprocessing,
            max_queue_size=dataset.max_queue_size,
        )
        self.check, self.dataset = check, dataset
        if self.num_batches == 0:
            raise ValueError(EMPTY)
        if self.use_multiprocessing:
            # The batches are looked at, and counted, in other processes.
            check.batches += 1

    @property
    def num_batches(self):
        return self.dataset.num_batches

    def __getitem__(self, index):
        batch = self.dataset[index]
        # Keras drops a None: what a dataset gives that was asked for more than it has.
        return None if batch is None else without_targets(self.check(batch, index))

    def on_epoch_begin(self):
        self.dataset.on_epoch_begin()

    def on_epoch_end(self):
        self.dataset.on_epoch_end()


def _checked_iterator(check, iterator):
    number = -1
    for number, batch in enumerate(iterator):
        yield check(batch, number)
    if number < 0:
        raise ValueError(EMPTY)


def _checked_loader(check, loader):
    import torch

    class Checked(torch.utils.data.IterableDataset):
        def __iter__(self):
            return map(without_targets, _checked_iterator(check, loader))

    if hasattr(loader.dataset, "__len__"):
        if not len(loader):
            raise ValueError(EMPTY)
        Checked.__len__ = lambda self: len(loader)
    return torch.utils.data.DataLoader(Checked(), batch_size=None)


def _checked_tf(check, dataset):
    import tensorflow as tf

    def is_nothing(tensor):
        # An empty Optional is how TensorFlow carries a None beside weights.
        return tensor is None or isinstance(tensor, tf.experimental.Optional)

    specs = tf.nest.flatten(dataset.element_spec)
    kinds = (tf.TensorSpec, tf.NoneTensorSpec, tf.OptionalSpec)
    if not all(isinstance(spec, kinds) for spec in specs):
        raise ValueError(
            "`x` must be a tf.data.Dataset of dense tensors: pad the rows to one length. "
            f"Received: {dataset.element_spec}"
        )
    length = int(dataset.cardinality())
    if length == 0:
        raise ValueError(EMPTY)

    def look(number, *batch):
        batch = batch[0] if len(batch) == 1 else batch
        flat = tf.nest.flatten(batch)

        def on_host(number, *arrays):
            arrays = iter(arrays)
            found = [None if is_nothing(tensor) else next(arrays) for tensor in flat]
            check(tf.nest.pack_sequence_as(batch, found), number)
            return True

        tensors = [tensor for tensor in flat if not is_nothing(tensor)]
        done = tf.numpy_function(on_host, [number, *tensors], tf.bool)
        with tf.control_dependencies([done]):
            same = [t if is_nothing(t) else tf.identity(t) for t in flat]
        return tf.nest.pack_sequence_as(batch, same)

    looked_at = dataset.enumerate().map(look)
    if length == tf.data.INFINITE_CARDINALITY:
        # Numbered, it would pass for one that ends some day.
        looked_at = looked_at.apply(tf.data.experimental.assert_cardinality(length))
    return looked_at
