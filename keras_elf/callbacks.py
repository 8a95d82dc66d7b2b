"""Callbacks of `ELFGenerator.fit`, by their short name; see `keras_elf.training.callbacks`."""

from keras_elf.training.callbacks import *  # noqa: F403
from keras_elf.training.callbacks import __all__ as __all__
