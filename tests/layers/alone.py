"""Every public layer alone in a functional model that knows nothing of ELF."""

import keras
import numpy as np
from keras import ops

from keras_elf import layers

LATENT, WIDTH, VOCABULARY, PREFIX = 6, 8, 11, 2


def tensor(*shape, seed=0):
    """Standard normal float32 array, the same in every run."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype("float32")


def array(x):
    """float32 NumPy array of a tensor of any dtype on any backend."""
    return ops.convert_to_numpy(ops.cast(x, "float32"))


def randomise(layer, seed=0):
    """Give every variable random values: zeros and ones would hide mistakes."""
    rng = np.random.default_rng(seed)
    for variable in layer.variables:
        if "float" in variable.dtype:
            variable.assign(0.5 * rng.standard_normal(variable.shape))
    return layer


def _one_input(make, width):
    def model(dtype=None):
        x = keras.Input((None, width))
        return keras.Model(x, make(dtype)(x))

    return model, lambda length: tensor(3, length, width)


def _attention(make):
    def model(dtype=None):
        x, mask = keras.Input((None, WIDTH)), keras.Input((None,), dtype="bool")
        y = make(dtype)(x, prefix_length=PREFIX, attention_mask=mask)
        return keras.Model([x, mask], y)

    def inputs(length):
        mask = np.arange(length - PREFIX) < np.array([[1], [2], [9]])
        return [tensor(3, length, WIDTH), mask]

    return model, inputs


def _context_prefix():
    def model(dtype=None):
        x = keras.Input((None, WIDTH))
        t, scale, gate = (keras.Input(()) for _ in range(3))
        y, _ = layers.ContextPrefix(WIDTH, 1, 2, 3, dtype=dtype)(
            x, t, guidance_scale=scale, decode=gate
        )
        return keras.Model([x, t, scale, gate], y)

    def inputs(length):
        numbers = np.array([[0.2, 0.9, 1.0], [1.0, 3.0, 0.5], [0.0, 1.0, 1.0]], "float32")
        return [tensor(3, length, WIDTH), *numbers]

    return model, inputs


def _signal(make, values, dtype="float32"):
    def model(policy=None):
        value = keras.Input((), dtype=dtype)
        return keras.Model(value, make(policy or "float32")(value))

    return model, lambda length: np.array(values, dtype)


def _self_conditioning():
    def model(dtype=None):
        z, previous = keras.Input((None, LATENT)), keras.Input((None, LATENT))
        return keras.Model(
            [z, previous], layers.SelfConditioningProj(LATENT, dtype=dtype)(z, previous)
        )

    return model, lambda length: [tensor(3, length, LATENT), tensor(3, length, LATENT, seed=1)]


def _rotary():
    def model(dtype=None):
        x = keras.Input((None, 2, 4))
        return keras.Model(
            x, layers.RotaryEmbedding(theta=100.0, dtype=dtype)(x, prefix_length=PREFIX)
        )

    return model, lambda length: tensor(3, length, 2, 4)


def _timestep():
    def model(dtype=None):
        t = keras.Input(())
        return keras.Model(t, layers.TimestepEmbedding(WIDTH, 16, dtype=dtype)(t))

    return model, lambda length: np.linspace(0.1, 0.9, 3, dtype="float32")


# Layer name -> (dtype -> model, length -> inputs). No argument has its default value, so
# that one forgotten in a config shows.
CASES = {
    "BottleneckTextProj": _one_input(
        lambda dtype: layers.BottleneckTextProj(WIDTH, bottleneck_dim=4, dtype=dtype), LATENT
    ),
    "ContextPrefix": _context_prefix(),
    "LabelSignal": _signal(
        lambda dtype: layers.LabelSignal(3, 2, WIDTH, key="topic", dtype=dtype), [0, 3, 1], "int32"
    ),
    "ModeSignal": _signal(lambda dtype: layers.ModeSignal(2, WIDTH, dtype=dtype), [0, 1, 0.5]),
    "NumberSignal": _signal(
        lambda dtype: layers.NumberSignal(2, WIDTH, "pace", 0.5, dtype=dtype), [0.2, 0.9, 1]
    ),
    "ScaleSignal": _signal(lambda dtype: layers.ScaleSignal(2, WIDTH, dtype=dtype), [1, 3, 0.5]),
    "TimeSignal": _signal(lambda dtype: layers.TimeSignal(2, WIDTH, dtype=dtype), [0.2, 0.9, 1]),
    "DenoisingHead": _one_input(lambda dtype: layers.DenoisingHead(LATENT, dtype=dtype), WIDTH),
    "ELFAttention": _attention(
        lambda dtype: layers.ELFAttention(WIDTH, 2, 0.1, attention_dropout=0.2, dtype=dtype)
    ),
    "ELFBlock": _attention(
        lambda dtype: layers.ELFBlock(WIDTH, 2, 3.0, 0.1, attention_dropout=0.2, dtype=dtype)
    ),
    "RotaryEmbedding": _rotary(),
    "SelfConditioningProj": _self_conditioning(),
    "SwiGLU": _one_input(lambda dtype: layers.SwiGLU(WIDTH, 3.0, dropout=0.1, dtype=dtype), WIDTH),
    "TiedUnembedding": _one_input(
        lambda dtype: layers.TiedUnembedding(VOCABULARY, LATENT, dtype=dtype), WIDTH
    ),
    "TimestepEmbedding": _timestep(),
}
# Whatever the policy: heads, and what is added to a float32 stream.
FLOAT32_OUTPUT = ("DenoisingHead", "TiedUnembedding", "ELFBlock")


def build(name, dtype=None):
    """`(model, layer, length -> inputs)` with random weights."""
    make, inputs = CASES[name]
    model = make(dtype)
    (layer,) = (x for x in model.layers if type(x).__name__ == name)
    return randomise(model), layer, inputs
