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
    # With a start: the converter from JAX to ONNX reads no `arange` without.
    frequencies = ops.exp(-math.log(max_period) * ops.arange(0, half, dtype="float32") / half)
    angles = ops.cast(value, "float32")[:, None] * frequencies[None, :]
    return ops.concatenate([ops.cos(angles), ops.sin(angles)], axis=-1)


@keras.saving.register_keras_serializable(package="keras_elf")
class TimestepEmbedding(keras.layers.Layer):
    """Sinusoidal features of a number, then Dense, SiLU, Dense.

    Args:
        hidden_size: int. Width of the output.
        num_features: int, even. Number of sinusoidal features. Defaults to `256`.

    Call arguments:
        value: float tensor `(batch,)`.

    Returns:
        Tensor `(batch, hidden_size)` in the compute dtype. Under every policy it is
        computed in float32 and rounded once.

    Source: ELF, arXiv 2605.10938 (network).
    """

    def __init__(self, hidden_size, num_features=256, **kwargs):
        # bfloat16 resolves times near 1, and the features of them, to 1/256 only: neither
        # may be cast before the Dense layers have told neighbouring times apart.
        super().__init__(autocast=False, **kwargs)
        self.hidden_size = checks.integer("hidden_size", hidden_size, minimum=1)
        self.num_features = checks.integer("num_features", num_features, minimum=2)
        if num_features % 2:
            raise ValueError(f"`num_features` must be even. Received: {num_features}")
        self.mlp_0 = self._dense("mlp_0")
        self.mlp_2 = self._dense("mlp_2")

    def _dense(self, name):
        # One initializer each: a shared one draws the same numbers for every kernel.
        normal = keras.initializers.RandomNormal(stddev=0.02)
        return keras.layers.Dense(
            self.hidden_size, kernel_initializer=normal, dtype="float32", name=name
        )

    def build(self, input_shape):
        self.mlp_0.build((None, self.num_features))
        self.mlp_2.build((None, self.hidden_size))
        self.built = True

    def call(self, value):
        x = ops.silu(self.mlp_0(sinusoidal_features(value, self.num_features)))
        return ops.cast(self.mlp_2(x), self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return (input_shape[0], self.hidden_size)

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_size": self.hidden_size,
            "num_features": self.num_features,
        }
