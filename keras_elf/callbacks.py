"""Callbacks of `ELFGenerator.fit`, by their short name; see `keras_elf.training.callbacks`."""

from keras_elf.training.callbacks import (
    FitCallback,
    InterruptSafely,
    ReconstructionAccuracy,
    ResumableCheckpoint,
    SampleText,
    StopOnNaN,
    TrainingLog,
)

__all__ = [
    "FitCallback",
    "InterruptSafely",
    "ReconstructionAccuracy",
    "ResumableCheckpoint",
    "SampleText",
    "StopOnNaN",
    "TrainingLog",
]
