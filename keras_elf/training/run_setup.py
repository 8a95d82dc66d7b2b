"""How many steps a run takes, and settings for them: what `fit` does before its first step."""

import warnings

from keras_elf.training.averages import restart_averages, trained_share
from keras_elf.training.recipe import TrainingRecipe
from keras_elf.training.run_length import PUBLISHED_BATCH_SIZE, too_short


def batches_in_run(x, epochs=1, initial_epoch=0, steps_per_epoch=None):
    """Batches that a call of `fit` goes through.

    Args:
        x: a dataset: whatever has `num_batches`, `cardinality()` or a length.
        epochs, initial_epoch, steps_per_epoch: as in `keras.Model.fit`.

    Returns:
        int, or `None` where neither `x` nor `steps_per_epoch` tells.
    """
    in_epoch = steps_per_epoch or _batches(x)
    return None if in_epoch is None else max(0, epochs - initial_epoch) * in_epoch


def batch_size_of(x):
    """Rows in a batch of a dataset, or `None` where it does not tell."""
    size = getattr(x, "batch_size", None)
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return size
    spec = getattr(x, "element_spec", None)
    while isinstance(spec, (dict, tuple, list)) and spec:
        spec = next(iter(spec.values())) if isinstance(spec, dict) else spec[0]
    shape = getattr(spec, "shape", None)
    return shape[0] if shape is not None and shape.rank else None


def prepare_optimizer(model, x, settings):
    """Give the optimizer of a model what a run needs, before its first step.

    Args:
        model: a compiled `ELFGenerator`.
        x: the dataset of the run.
        settings: dict of the arguments of `fit`.
    """
    optimizer = model.optimizer
    if optimizer is None:
        return
    names = ("epochs", "initial_epoch", "steps_per_epoch")
    batches = batches_in_run(x, **{n: settings[n] for n in names if n in settings})
    if set_up_run(optimizer, batches, batch_size_of(x), model.automatic_recipe):
        model.train_function = None  # Compiled with the rates of another run.
    # State first made inside a step has TensorFlow trace and compile that step twice; under a
    # strategy of TensorFlow's, Keras makes it within the strategy's scope.
    if not optimizer.built and getattr(model, "_distribute_strategy", None) is None:
        optimizer.build(model.trainable_variables)
    # Weights may have been loaded since the optimizer was built; averages start at them.
    if not trained_share(model):
        restart_averages(model)


def set_up_run(optimizer, batches, batch_size, automatic):
    """Give an optimizer what suits the run, or warn where its own settings do not.

    Args:
        optimizer: a `keras.optimizers.Optimizer`.
        batches: int or `None`, see `batches_in_run`.
        batch_size: int or `None`. Rows in a batch.
        automatic: bool. Whether the settings are to be chosen here: those of
            `TrainingRecipe.for_run`, or the published ones where the length is not known.

    Returns:
        The `TrainingRecipe` that was applied, or `None`.
    """
    accumulated = getattr(optimizer, "gradient_accumulation_steps", None) or 1
    steps = None if batches is None else batches // accumulated
    if not automatic:
        message = too_short(optimizer, steps) if steps else None
        if message is not None:
            warnings.warn(message, UserWarning, stacklevel=4)
        return None
    batch_size = (batch_size or PUBLISHED_BATCH_SIZE) * accumulated
    if steps:
        recipe = TrainingRecipe.for_run(steps, batch_size)
    elif steps is None:
        warnings.warn(
            "The dataset does not tell how many batches it has, so that training takes the "
            "published settings, made for 100,000 steps (warm-up 5,000). Pass `steps_per_epoch` to "
            "`fit` for settings that suit the run, or compile with "
            "`keras_elf.TrainingRecipe.for_run(total_steps, batch_size)`.",
            UserWarning,
            stacklevel=4,
        )
        recipe = TrainingRecipe(warmup_steps=5000)
    else:
        return None
    recipe.apply_to(optimizer)
    return recipe


def _batches(x):
    if hasattr(x, "cardinality"):
        count = int(x.cardinality())
        return count if count > 0 else None
    # Keras's own name for it, which is None for endless data.
    if hasattr(x, "num_batches"):
        return x.num_batches
    try:
        return len(x)
    except TypeError:
        return None
