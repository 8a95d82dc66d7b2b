"""Guidance: rules that ask the network for further predictions and combine them."""

from keras_elf.guidance.condition import ConditionGuidance
from keras_elf.guidance.guidance import DenoiserInputs, Guidance
from keras_elf.guidance.prediction import Prediction, guided_prediction
from keras_elf.guidance.self_conditioning import SelfConditioningGuidance

__all__ = [
    "ConditionGuidance",
    "DenoiserInputs",
    "Guidance",
    "Prediction",
    "SelfConditioningGuidance",
    "guided_prediction",
]
