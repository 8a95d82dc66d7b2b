"""ELF's layers. Each can be used alone in a functional model of one's own."""

from keras_elf.layers.attention import ELFAttention
from keras_elf.layers.block import ELFBlock
from keras_elf.layers.bottleneck import BottleneckTextProj
from keras_elf.layers.context_prefix import ContextPrefix
from keras_elf.layers.context_signal import ContextSignal
from keras_elf.layers.context_signals import (
    LabelSignal,
    ModeSignal,
    NumberSignal,
    ScaleSignal,
    TimeSignal,
)
from keras_elf.layers.denoising_head import DenoisingHead
from keras_elf.layers.rotary import RotaryEmbedding
from keras_elf.layers.self_conditioning import SelfConditioningProj
from keras_elf.layers.swiglu import SwiGLU
from keras_elf.layers.tied_unembedding import TiedUnembedding
from keras_elf.layers.timestep_embedding import TimestepEmbedding

__all__ = [
    "BottleneckTextProj",
    "ContextPrefix",
    "ContextSignal",
    "DenoisingHead",
    "ELFAttention",
    "ELFBlock",
    "LabelSignal",
    "ModeSignal",
    "NumberSignal",
    "RotaryEmbedding",
    "ScaleSignal",
    "SelfConditioningProj",
    "SwiGLU",
    "TiedUnembedding",
    "TimeSignal",
    "TimestepEmbedding",
]
