"""The low-rank projection that brings latents into the width of the transformer."""

import keras

from keras_elf import checks


@keras.saving.register_keras_serializable(package="keras_elf")
class BottleneckTextProj(keras.layers.Layer):
    """Two Dense layers without an activation between: `(x A) B + b`.

    The narrow middle makes the network work on the low-dimensional part of the latents;
    128 was best in the paper's ablation.

    Args:
        hidden_size: int. Width of the output.
        bottleneck_dim: int. Width of the middle. Defaults to `128`.

    Call arguments:
        x: tensor `(batch, length, width)`.

    Returns:
        Tensor `(batch, length, hidden_size)`.

    Source: ELF, arXiv 2605.10938 (network; ablation of the bottleneck).
    """

    def __init__(self, hidden_size, bottleneck_dim=128, **kwargs):
        super().__init__(**kwargs)
        self.hidden_size = checks.integer("hidden_size", hidden_size, minimum=1)
        self.bottleneck_dim = checks.integer("bottleneck_dim", bottleneck_dim, minimum=1)
        policy = self.dtype_policy
        self.proj1 = keras.layers.Dense(bottleneck_dim, use_bias=False, dtype=policy, name="proj1")
        self.proj2 = keras.layers.Dense(hidden_size, dtype=policy, name="proj2")
        self.supports_masking = True

    def build(self, input_shape):
        self.proj1.build(input_shape)
        self.proj2.build((*input_shape[:-1], self.bottleneck_dim))
        self.built = True

    def call(self, x):
        return self.proj2(self.proj1(x))

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.hidden_size)

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_size": self.hidden_size,
            "bottleneck_dim": self.bottleneck_dim,
        }
