"""Callbacks of `ELFGenerator.fit`: samples, exact resume, logs, NaN stop, safe interrupts."""

from keras_elf.training.callbacks.fit_callback import FitCallback
from keras_elf.training.callbacks.interrupt_safely import InterruptSafely
from keras_elf.training.callbacks.reconstruction_accuracy import ReconstructionAccuracy
from keras_elf.training.callbacks.resumable_checkpoint import ResumableCheckpoint
from keras_elf.training.callbacks.sample_text import SampleText
from keras_elf.training.callbacks.stop_on_nan import StopOnNaN
from keras_elf.training.callbacks.training_log import TrainingLog

__all__ = [
    "FitCallback",
    "InterruptSafely",
    "ReconstructionAccuracy",
    "ResumableCheckpoint",
    "SampleText",
    "StopOnNaN",
    "TrainingLog",
]
