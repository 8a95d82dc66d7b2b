"""Samplers: a step each, and one loop that drives them all."""

from keras_elf.samplers.engine import SamplingEngine
from keras_elf.samplers.heun import HeunSampler
from keras_elf.samplers.multistep import MultistepSampler
from keras_elf.samplers.noise import SampleNoise
from keras_elf.samplers.ode import ODESampler
from keras_elf.samplers.sampler import Sampler, get, register
from keras_elf.samplers.sampling_config import OPTIONS, SamplingConfig
from keras_elf.samplers.sampling_state import SamplingState
from keras_elf.samplers.sde import SDESampler

__all__ = [
    "OPTIONS",
    "HeunSampler",
    "MultistepSampler",
    "ODESampler",
    "SDESampler",
    "SampleNoise",
    "Sampler",
    "SamplingConfig",
    "SamplingEngine",
    "SamplingState",
    "get",
    "register",
]
