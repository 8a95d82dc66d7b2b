"""The gated feed-forward layer."""

import keras
from keras import ops

from keras_elf import checks


def swiglu_width(hidden_size, mlp_ratio):
    """Inner width `int(int(hidden_size * mlp_ratio) * 2 / 3)`: two thirds of a plain MLP's."""
    return int(int(hidden_size * mlp_ratio) * 2 / 3)


@keras.saving.register_keras_serializable(package="keras_elf")
class SwiGLU(keras.layers.Layer):
    """Feed-forward layer `(silu(a) * b) W3 + c` with `[a | b]` from one fused Dense.

    Args:
        hidden_size: int. Width of the input and the output.
        mlp_ratio: float. Width of the plain MLP it stands for, in units of `hidden_size`;
            the inner width is two thirds of that. Defaults to `4.0`.
        dropout: float in [0, 1]. Dropout on the gated activation. Defaults to `0.0`.

    Source: ELF, arXiv 2605.10938 (network); GLU variants, arXiv 2002.05202.
    """

    def __init__(self, hidden_size, mlp_ratio=4.0, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.hidden_size = checks.integer("hidden_size", hidden_size, minimum=1)
        self.mlp_ratio = checks.number("mlp_ratio", mlp_ratio, minimum=0)
        self.dropout = checks.probability("dropout", dropout)
        self.inner_size = checks.integer(
            "int(int(hidden_size * mlp_ratio) * 2 / 3)",
            swiglu_width(hidden_size, mlp_ratio),
            minimum=1,
        )
        policy = self.dtype_policy
        self.w12 = keras.layers.Dense(2 * self.inner_size, dtype=policy, name="w12")
        self.w3 = keras.layers.Dense(hidden_size, dtype=policy, name="w3")
        self.inner_dropout = keras.layers.Dropout(dropout, dtype=policy, name="inner_dropout")
        self.supports_masking = True

    def build(self, input_shape):
        self.w12.build(input_shape)
        self.w3.build((*input_shape[:-1], self.inner_size))
        self.built = True

    def call(self, x, training=None):
        x = self.w12(x)
        # Outside of training the product stays in float32 and is rounded once, at its end.
        a, b = ops.split(x if training else ops.cast(x, "float32"), 2, axis=-1)
        gated = ops.cast(ops.silu(a) * b, x.dtype)
        return self.w3(self.inner_dropout(gated, training=training))

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.hidden_size)

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_size": self.hidden_size,
            "mlp_ratio": self.mlp_ratio,
            "dropout": self.dropout,
        }
