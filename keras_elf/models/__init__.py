"""Whole models: the backbone, the generator, its preprocessor."""

from keras_elf.compiled import compiled
from keras_elf.models.architectures import ARCHITECTURES, architecture, parameter_count
from keras_elf.models.backbone import ELFBackbone
from keras_elf.models.conditional import conditional_settings
from keras_elf.models.generator import ELFGenerator
from keras_elf.models.preprocessor import ELFPreprocessor
from keras_elf.training import TrainingRecipe
from keras_elf.training.averages import averaged_weights

__all__ = [
    "ARCHITECTURES",
    "ELFBackbone",
    "ELFGenerator",
    "ELFPreprocessor",
    "TrainingRecipe",
    "architecture",
    "averaged_weights",
    "compiled",
    "conditional_settings",
    "parameter_count",
]
