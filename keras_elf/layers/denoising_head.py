"""The head that turns hidden states into predicted clean latents."""

import keras

from keras_elf import checks
from keras_elf.layers.attention import NORM_EPSILON


@keras.saving.register_keras_serializable(package="keras_elf")
class DenoisingHead(keras.layers.Layer):
    """RMS norm and a Dense that starts at zero: the x-prediction head.

    It computes in float32 under every policy, since what it predicts enters the flow
    arithmetic, where errors are divided by `1 - t`.

    Args:
        latent_dim: int. Width of the latents.

    Call arguments:
        x: tensor `(batch, length, hidden_size)`. Hidden states without the prefix.

    Returns:
        float32 tensor `(batch, length, latent_dim)`.

    Source: ELF, arXiv 2605.10938 (x-prediction).
    """

    def __init__(self, latent_dim, **kwargs):
        super().__init__(**kwargs)
        self.latent_dim = checks.integer("latent_dim", latent_dim, minimum=1)
        self.norm = keras.layers.RMSNormalization(
            epsilon=NORM_EPSILON, dtype="float32", name="norm"
        )
        self.linear = keras.layers.Dense(
            latent_dim, kernel_initializer="zeros", dtype="float32", name="linear"
        )

    def build(self, input_shape):
        self.norm.build(input_shape)
        self.linear.build(input_shape)
        self.built = True

    def call(self, x):
        return self.linear(self.norm(x))

    def compute_output_spec(self, x):
        return keras.KerasTensor((*x.shape[:-1], self.latent_dim), dtype="float32")

    def get_config(self):
        return {**super().get_config(), "latent_dim": self.latent_dim}
