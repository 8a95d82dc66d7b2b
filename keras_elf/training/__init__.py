"""What `fit` needs around the training step: how a run is set up and watched."""

from keras_elf.training.recipe import TrainingRecipe
from keras_elf.training.run_length import default_batch_size, too_short
from keras_elf.training.run_setup import batch_size_of, batches_in_run, set_up_run

__all__ = [
    "TrainingRecipe",
    "batch_size_of",
    "batches_in_run",
    "default_batch_size",
    "set_up_run",
    "too_short",
]
