"""The training objective: draws -> corrupted batch -> forward passes -> losses."""

from keras_elf.objectives.compositions import (
    COMPOSITIONS,
    Composition,
    PerExample,
    PerStep,
    Stratified,
)
from keras_elf.objectives.contract import check_parts, check_report
from keras_elf.objectives.decode_corruption import DecodeCorruption, LogitNormalCorruption
from keras_elf.objectives.elf_objective import ELFObjective
from keras_elf.objectives.guidance_scale_samplers import (
    ConstantScale,
    GuidanceScaleSampler,
    LogUniformScales,
)
from keras_elf.objectives.randomness import RowSeedGenerator, normal, uniform
from keras_elf.objectives.terms import Term, TimeBins, mean_of
from keras_elf.objectives.time_samplers import (
    LogitNormalTimes,
    MixtureTimes,
    TimeSampler,
    UniformTimes,
)
from keras_elf.objectives.weighting import UniformWeighting, VelocityWeighting, Weighting

__all__ = [
    "COMPOSITIONS",
    "Composition",
    "ConstantScale",
    "DecodeCorruption",
    "ELFObjective",
    "GuidanceScaleSampler",
    "LogUniformScales",
    "LogitNormalCorruption",
    "LogitNormalTimes",
    "MixtureTimes",
    "PerExample",
    "PerStep",
    "RowSeedGenerator",
    "Stratified",
    "Term",
    "TimeBins",
    "TimeSampler",
    "UniformTimes",
    "UniformWeighting",
    "VelocityWeighting",
    "Weighting",
    "check_parts",
    "check_report",
    "mean_of",
    "normal",
    "uniform",
]
