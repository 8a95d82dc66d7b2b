"""What a call of `fit` trains and validates on, brought into batches that are checked."""

import keras
import numpy as np

from keras_elf.data import ResumableDataset
from keras_elf.training import inputs
from keras_elf.training.arguments import refuse_for_streams
from keras_elf.training.batch_checks import BatchCheck
from keras_elf.training.checked_data import checked

SAMPLED_ROWS = 32


class FitData:
    """The data of a run and the arguments that Keras's `fit` gets with them.

    Args:
        model: `ELFGenerator`.
        x, batch_size, validation_data, shuffle: as given to `fit`.
        settings: dict of the other arguments of `fit`.
        epoch: int. At which order of its rows data in memory begin.

    Attributes:
        x: a dataset.
        settings: dict of the arguments of `keras.Model.fit`.
        check, validation_check: `BatchCheck` of datasets whose batches are still to be checked,
            or `None`.
        sample: dict of a few rows of data in memory, or `None`.
        conditional: bool. Whether rows have conditions; `None` where it cannot be told without
            reading the data.

    Raises:
        ValueError: for data that do not fit the model, and arguments that do not fit the data.
    """

    def __init__(self, model, x, batch_size, validation_data, shuffle, settings, epoch):
        if isinstance(x, str):
            raise ValueError(
                "`x` must be a list of texts, not a single str: for a file pass its lines. "
                f"Received: {x!r:.80}"
            )
        settings = dict(settings)
        inputs.refuse_text(x)
        if not inputs.is_materialised(x):
            refuse_for_streams(settings)
        x = inputs.with_weights(model, x, settings.pop("sample_weight", None))
        x, validation_data = _split(model, x, validation_data, settings)
        self.validation_check = None
        if inputs.is_materialised(validation_data):
            size = settings.pop("validation_batch_size", None) or batch_size
            validation_data = inputs.evaluation_batches(model, validation_data, size)
        elif validation_data is not None:
            inputs.refuse_text(validation_data)
            self.validation_check = BatchCheck.of(model)
            validation_data = checked(self.validation_check, validation_data)
        self.sample = self.check = self._served = None
        if inputs.is_materialised(x):
            seed = 0 if model.seed is None else model.seed
            x = inputs.training_batches(model, x, batch_size, seed, shuffle)
            x.skip_to(max(epoch, settings.get("initial_epoch", 0)))
            self._served, batch_size = x, None
            rows = {key: array[:SAMPLED_ROWS] for key, array in x.arrays.items()}
            self.sample = {key: rows[key] for key in ("token_ids", "is_cond", "is_valid")}
            self.conditional = bool(np.any(x.arrays["is_cond"]))
        else:
            self.check = BatchCheck.of(model)
            self.conditional = _conditional(x)
        # Other datasets than Keras's have an order of their own.
        own_order = isinstance(x, ResumableDataset) or not isinstance(x, keras.utils.PyDataset)
        self.x = x
        self.settings = {"batch_size": batch_size, "shuffle": shuffle and not own_order, **settings}
        self.settings["validation_data"] = validation_data

    def next_epoch(self, epoch):
        """At which order of the rows the next call of `fit` begins."""
        if self._served is None:
            return epoch
        self._served.on_epoch_end()
        place = self._served.position
        return place["epoch"] + (place["batch"] > 0)


def _conditional(dataset):
    """Whether the first batch of a dataset that has its batches by number has conditions."""
    if not isinstance(dataset, ResumableDataset):
        return None
    batch = dataset.batch_at(0)
    marks = batch.get("is_cond") if isinstance(batch, dict) else None
    return bool(np.any(marks)) if marks is not None else False


def _split(model, x, validation_data, settings):
    split = settings.pop("validation_split", None)
    if not split:
        return x, validation_data
    if validation_data is not None:
        raise ValueError(
            "Only one of `validation_split` and `validation_data` may be given. Received "
            f"validation_split={split} and validation_data"
        )
    return inputs.split_rows(inputs.to_rows(model, x), split)
