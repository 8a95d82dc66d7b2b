"""Embedding of a real number (a time, a guidance scale) into the width of the network."""

import math

import keras
from keras import ops

from keras_elf import checks


def sinusoidal_features(value, num_features=256, max_period=10000.0):
    """`[cos | sin]` of `value * exp(-ln(max_period) * k / half)`, in float32.

    Args:
        value: tensor `(batch,)`. The raw value; it is not scaled.
        num_features: int, even. Defaults to `256`.
        max_period: float. Defaults to `10000.0`.

    Returns:
        float32 tensor `(batch, num_features)`.
    """
    half = num_features // 2
    frequencies = ops.exp(-math.log(max_period) * ops.arange(half, dtype="float32") / half)
    angles = ops.cast(value, "float32")[:, None] * frequencies[None, :]
    return ops.concatenate([ops.cos(angles), ops.sin(angles)], axis=-1)


@keras.saving.register_keras_serializable(package="keras_elf")
class TimestepEmbedding(keras.layers.Layer):
    """Sinusoidal features of a number, then Dense, SiLU, Dense.

    Args:
        hidden_size: int. Width of the output.
        num_features: int, even. Number of sinusoidal features. Defaults to `256`.

    Call arguments:
        value: float tensor `(batch,)`, taken in float32 whatever the policy.

    Returns:
        Tensor `(batch, hidden_size)` in the compute dtype.

    Source: ELF, arXiv 2605.10938 (network).
    """

    def __init__(self, hidden_size, num_features=256, **kwargs):
        # bfloat16 resolves times near 1 to 1/256 only, so the input must not be cast.
        super().__init__(autocast=False, **kwargs)
        self.hidden_size = checks.integer("hidden_size", hidden_size, minimum=1)
        self.num_features = checks.integer("num_features", num_features, minimum=2)
        if num_features % 2:
            raise ValueError(f"`num_features` must be even. Received: {num_features}")
        dense = {
            "kernel_initializer": keras.initializers.RandomNormal(stddev=0.02),
            "dtype": self.dtype_policy,
        }
        self.mlp_0 = keras.layers.Dense(hidden_size, name="mlp_0", **dense)
        self.mlp_2 = keras.layers.Dense(hidden_size, name="mlp_2", **dense)

    def build(self, input_shape):
        self.mlp_0.build((None, self.num_features))
        self.mlp_2.build((None, self.hidden_size))
        self.built = True

    def call(self, value):
        return self.mlp_2(ops.silu(self.mlp_0(sinusoidal_features(value, self.num_features))))

    def compute_output_shape(self, input_shape):
        return (input_shape[0], self.hidden_size)

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_size": self.hidden_size,
            "num_features": self.num_features,
        }
