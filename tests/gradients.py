"""The library's own, under the name that the tests know."""

from keras_elf.testing.gradients import ValueAndGradients

__all__ = ["ValueAndGradients"]
