"""Joining the noisy latents with the network's own earlier prediction."""

import keras
from keras import ops

from keras_elf import checks


@keras.saving.register_keras_serializable(package="keras_elf")
class SelfConditioningProj(keras.layers.Layer):
    """`Dense([z | self_condition])` back to the latent width; `z` itself without one.

    Args:
        latent_dim: int. Width of the latents.

    Call arguments:
        z: tensor `(batch, length, latent_dim)`. Noisy latents.
        self_condition: tensor of the same shape, or `None`. The earlier prediction.

    Returns:
        Tensor `(batch, length, latent_dim)`.

    Source: ELF, arXiv 2605.10938 (network); self-conditioning, arXiv 2208.04202.
    """

    def __init__(self, latent_dim, **kwargs):
        super().__init__(**kwargs)
        self.latent_dim = checks.integer("latent_dim", latent_dim, minimum=1)
        self.proj = keras.layers.Dense(latent_dim, dtype=self.dtype_policy, name="proj")

    def build(self, z_shape, self_condition_shape=None):
        self.proj.build((*z_shape[:-1], 2 * self.latent_dim))
        self.built = True

    def call(self, z, self_condition=None):
        if self_condition is None:
            return z
        return self.proj(ops.concatenate([z, self_condition], axis=-1))

    def compute_output_shape(self, z_shape, self_condition_shape=None):
        return (*z_shape[:-1], self.latent_dim)

    def get_config(self):
        return {**super().get_config(), "latent_dim": self.latent_dim}
