"""Arguments of `fit` and its likes that would be ignored or misread, refused with a reason."""

import warnings

import keras

from keras_elf import checks
from keras_elf.data import TokenBatches
from keras_elf.training.batch_checks import without_targets


def refuse_float16(model):
    """Raise `ValueError` where the network computes in float16."""
    if keras.backend.standardize_dtype(model.backbone.compute_dtype) == "float16":
        raise ValueError(
            "float16 has too little range to train ELF. Use dtype='mixed_bfloat16' or "
            f"'float32'. Received policy: {model.backbone.dtype_policy.name}"
        )


def warn_of_unfrozen_encoder(model):
    """Say once that an encoder which nobody wished to train is trained along."""
    encoder = model.encoder
    if encoder.meant_to_train or not encoder.trainable_variables:
        return
    encoder.meant_to_train = True
    warnings.warn(
        f"The {type(encoder).__name__} {encoder.name!r} is not frozen: it is trained along, and "
        "the latents that ELF learns to write move while it learns. Call `encoder.freeze()`, "
        "after `keras_elf.encoders.pretrain` if it is new, or `encoder.unfreeze()` if this is "
        "meant.",
        UserWarning,
        stacklevel=3,
    )


def check_counts(arguments):
    """Raise `ValueError` for epochs and steps that are not whole numbers in range."""
    least = {"epochs": 1, "initial_epoch": 0, "steps_per_epoch": 1, "validation_steps": 1}
    for name, minimum in least.items():
        if arguments.get(name) is not None:
            checks.integer(name, arguments[name], minimum=minimum)


def refuse_targets(arguments):
    """Raise `ValueError` for `y` and `class_weight` in a dict of arguments."""
    if arguments.get("y") is not None:
        raise ValueError("`y` must be None: the text is its own target.")
    if arguments.get("class_weight") is not None:
        raise ValueError(
            "`class_weight` must be None: text has no classes. Weights of single rows are "
            f"`sample_weight`. Received: class_weight={arguments['class_weight']!r:.80}"
        )


def refuse_for_streams(arguments):
    """Raise `ValueError` for arguments that need data in memory."""
    if arguments.get("validation_split"):
        raise ValueError(
            "`validation_split` needs `x` in memory. For a dataset give `validation_data`. "
            f"Received: validation_split={arguments['validation_split']}"
        )
    if arguments.get("sample_weight") is not None:
        raise ValueError(
            "`sample_weight` needs `x` in memory. A dataset gives the weights itself, as batches "
            "`(x, None, sample_weight)`."
        )


class WeightedBatches(TokenBatches):
    """`TokenBatches` of rows with a `sample_weight` each, in Keras's form."""

    def __getitem__(self, index):
        rows = super().__getitem__(index)
        return without_targets((rows, None, rows.pop("sample_weight")))
