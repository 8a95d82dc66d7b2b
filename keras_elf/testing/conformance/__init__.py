"""Checks of parts of one's own: plain functions that say what is wrong, found and to be done."""

from keras_elf.testing.conformance.denoisers import check_denoiser
from keras_elf.testing.conformance.encoders import check_encoder
from keras_elf.testing.conformance.guidance_rules import check_guidance
from keras_elf.testing.conformance.objectives import check_objective
from keras_elf.testing.conformance.samplers import check_sampler
from keras_elf.testing.conformance.signals import check_signal

__all__ = [
    "check_denoiser",
    "check_encoder",
    "check_guidance",
    "check_objective",
    "check_sampler",
    "check_signal",
]
