"""Samplers: a loop plus one pure step each."""

from keras_elf.samplers.guidance import guided_clean
from keras_elf.samplers.loop import SamplingState, run
from keras_elf.samplers.noise import SampleNoise
from keras_elf.samplers.ode import ODESampler
from keras_elf.samplers.sampler import Sampler, get, register
from keras_elf.samplers.sde import SDESampler

__all__ = [
    "ODESampler",
    "SDESampler",
    "SampleNoise",
    "Sampler",
    "SamplingState",
    "get",
    "guided_clean",
    "register",
    "run",
]
