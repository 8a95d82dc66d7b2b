"""Text encoders with one interface: `(token ids, attention mask) -> latents`."""

import importlib

from keras_elf.encoders.latent_encoder import LatentEncoder
from keras_elf.encoders.latent_statistics import latent_statistics
from keras_elf.encoders.masks import encoder_attention_mask
from keras_elf.encoders.t5_encoder import T5Encoder
from keras_elf.encoders.tables import GaussianTable, LearnedTable
from keras_elf.encoders.text_encoder import TextEncoder
from keras_elf.encoders.transformer_encoder import TransformerEncoder

__all__ = [
    "GaussianTable",
    "LatentEncoder",
    "LearnedTable",
    "MaskedTokenModel",
    "T5Encoder",
    "TextEncoder",
    "TransformerEncoder",
    "encoder_attention_mask",
    "latent_statistics",
    "pretrain",
]

# Pretraining is training, a layer above this one: it is looked up when it is asked for.
_PRETRAINING = ("MaskedTokenModel", "pretrain")


def __getattr__(name):
    if name in _PRETRAINING:
        return getattr(importlib.import_module("keras_elf.training.pretraining"), name)
    raise AttributeError(f"module 'keras_elf.encoders' has no attribute {name!r}")
