"""Optimizers and learning-rate schedules: ELF's recipe and its ablation."""

from keras_elf.optimizers.adamw import AdamW
from keras_elf.optimizers.muon import Muon
from keras_elf.optimizers.newton_schulz import newton_schulz
from keras_elf.optimizers.parameter_averaging import ParameterAveraging
from keras_elf.optimizers.schedules import WarmupSchedule, scaled_learning_rate

__all__ = [
    "AdamW",
    "Muon",
    "ParameterAveraging",
    "WarmupSchedule",
    "newton_schulz",
    "scaled_learning_rate",
]
