"""What `fit` needs around the step: recipes, data that can go on, callbacks, pretraining."""

from keras_elf.training.clock import RunClock
from keras_elf.training.pretraining import MaskedTokenModel, pretrain
from keras_elf.training.recipe import TrainingRecipe
from keras_elf.training.run import FitRun, running
from keras_elf.training.run_length import default_batch_size, default_epochs, too_short
from keras_elf.training.run_setup import batch_size_of, batches_in_run, set_up_run

__all__ = [
    "FitRun",
    "MaskedTokenModel",
    "RunClock",
    "TrainingRecipe",
    "batch_size_of",
    "batches_in_run",
    "default_batch_size",
    "default_epochs",
    "pretrain",
    "running",
    "set_up_run",
    "too_short",
]
