"""ELF, Embedded Language Flows, as a modular Keras 3 library.

Importing this package loads Keras alone; what needs more (`models`, and with it keras_hub)
is loaded on first use.
"""

import importlib
import os

from keras_elf.presets.published import register_published
from keras_elf.version import __version__

# TensorFlow, which keras_hub loads where it is installed, prints notices about itself.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

_MODULES = (
    "callbacks",
    "checkpoints",
    "data",
    "encoders",
    "evaluation",
    "export",
    "flow",
    "guidance",
    "hub",
    "layers",
    "models",
    "objectives",
    "optimizers",
    "presets",
    "samplers",
    "testing",
    "training",
)
_CONTRACT = ("Denoiser",)
_MODELS = ("ELFBackbone", "ELFGenerator", "ELFPreprocessor", "TrainingRecipe")

__all__ = ["__version__", *_MODULES, *_CONTRACT, *_MODELS]


# Here, where all parts meet, those below are told of the one above them.
register_published(lambda: importlib.import_module("keras_elf.checkpoints.released_presets"))


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module(f"keras_elf.{name}")
    if name in _CONTRACT:
        return getattr(importlib.import_module("keras_elf.denoiser"), name)
    if name in _MODELS:
        return getattr(importlib.import_module("keras_elf.models"), name)
    raise AttributeError(f"module 'keras_elf' has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
