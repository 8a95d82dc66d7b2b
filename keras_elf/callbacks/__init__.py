"""Callbacks of `ELFGenerator.fit`: samples, exact resume, logs, NaN stop, safe interrupts."""

from keras_elf.callbacks.interrupt_safely import InterruptSafely
from keras_elf.callbacks.resumable_checkpoint import ResumableCheckpoint
from keras_elf.callbacks.sample_text import SampleText
from keras_elf.callbacks.stop_on_nan import StopOnNaN
from keras_elf.callbacks.training_log import TrainingLog

__all__ = [
    "InterruptSafely",
    "ResumableCheckpoint",
    "SampleText",
    "StopOnNaN",
    "TrainingLog",
]
