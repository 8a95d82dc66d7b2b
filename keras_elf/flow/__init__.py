"""Flow matching as pure functions: path, velocity, schedules, pinning. No state, no draws."""

from keras_elf.flow.path import MIN_TIME_GAP
from keras_elf.flow.path import NOISE_SCALE
from keras_elf.flow.path import clean_from_noise
from keras_elf.flow.path import clean_from_velocity
from keras_elf.flow.path import interpolate
from keras_elf.flow.path import velocity
from keras_elf.flow.pinning import clear
from keras_elf.flow.pinning import pin
from keras_elf.flow.prediction import PREDICTIONS
from keras_elf.flow.prediction import predicted_clean
from keras_elf.flow.schedules import TIME_SCHEDULES
from keras_elf.flow.schedules import guidance_scale
from keras_elf.flow.schedules import logit_normal
from keras_elf.flow.schedules import time_grid

__all__ = [
    "MIN_TIME_GAP",
    "NOISE_SCALE",
    "PREDICTIONS",
    "TIME_SCHEDULES",
    "clean_from_noise",
    "clean_from_velocity",
    "clear",
    "guidance_scale",
    "interpolate",
    "logit_normal",
    "pin",
    "predicted_clean",
    "time_grid",
    "velocity",
]
