"""Flow matching as pure functions: path, velocity, schedules, pinning. No state, no draws."""

from keras_elf.flow.path import (
    MIN_TIME_GAP,
    NOISE_SCALE,
    clean_from_noise,
    clean_from_velocity,
    interpolate,
    velocity,
)
from keras_elf.flow.pinning import clear, pin
from keras_elf.flow.prediction import PREDICTIONS, predicted_clean
from keras_elf.flow.row_random import row_normal, row_spread, row_uniform, threefry_2x32
from keras_elf.flow.schedules import TIME_SCHEDULES, guidance_scale, logit_normal, time_grid

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
    "row_normal",
    "row_spread",
    "row_uniform",
    "threefry_2x32",
    "time_grid",
    "velocity",
]
