"""Rotary position embedding on interleaved pairs that leaves a prefix unrotated."""

import keras
from keras import ops

from keras_elf import checks


@keras.saving.register_keras_serializable(package="keras_elf")
class RotaryEmbedding(keras.layers.Layer):
    """Rotates query or key heads by their text position.

    Pairs are interleaved, `(2i, 2i + 1)`, unlike `keras_hub.layers.RotaryEmbedding`, which
    pairs `i` with `i + head_dim / 2`. The text token after the prefix has position 0;
    prefix tokens are not rotated. Angles and products are float32 under every policy.

    Args:
        theta: float. Base of the frequencies. Defaults to `10000.0`.

    Call arguments:
        x: tensor `(batch, length, heads, head_dim)`, `head_dim` even.
        prefix_length: int. Number of leading tokens without a position. Defaults to `0`.

    Returns:
        Tensor of the shape and dtype of `x`.

    Source: ELF, arXiv 2605.10938 (network); RoFormer, arXiv 2104.09864.
    """

    def __init__(self, theta=10000.0, **kwargs):
        super().__init__(**kwargs)
        self.theta = checks.number("theta", theta, minimum=1)
        self.built = True

    def call(self, x, prefix_length=0):
        half = x.shape[-1] // 2
        # With a start: the converter from JAX to ONNX reads no `arange` without.
        frequencies = self.theta ** (-ops.arange(0, half, dtype="float32") / half)
        positions = ops.arange(0, ops.shape(x)[1], dtype="float32")
        positions = ops.maximum(positions - float(prefix_length), 0.0)
        angles = positions[:, None] * frequencies[None, :]
        cos, sin = ops.cos(angles)[None, :, None, :], ops.sin(angles)[None, :, None, :]
        pairs = ops.reshape(ops.cast(x, "float32"), (*ops.shape(x)[:3], half, 2))
        even, odd = pairs[..., 0], pairs[..., 1]
        rotated = ops.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1)
        return ops.cast(ops.reshape(rotated, ops.shape(x)), x.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "theta": self.theta}
