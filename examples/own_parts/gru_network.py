"""A network of one's own: a bidirectional GRU in place of the transformer.

KERAS_BACKEND=torch python examples/own_parts/gru_network.py

Measured on PyTorch with 100 sentences: 96 % grammatical without self-conditioning guidance, 79 %
with the default scale of 3, which this network is not told of. About 100 s of one core.
"""

import grammar_model
import keras
from keras import ops

import keras_elf


@keras.saving.register_keras_serializable(package="own_parts")
class GRUNetwork(keras_elf.Denoiser, keras.Model):
    """Latents, time and mode of each position go through GRUs in both directions."""

    def __init__(self, vocabulary_size, latent_dim, width=64, depth=2, **kwargs):
        super().__init__(**kwargs)
        self.vocabulary_size, self.latent_dim = vocabulary_size, latent_dim
        self.width, self.depth = width, depth
        self.project = keras.layers.Dense(2 * width)
        self.blocks = [Block(width) for _ in range(depth)]
        self.norm = keras.layers.LayerNormalization()
        self.denoising_head = keras.layers.Dense(latent_dim)
        self.unembedding = keras.layers.Dense(vocabulary_size)

    def hidden_states(
        self,
        z,
        t,
        *,
        self_condition=None,
        guidance_scale=None,
        decode=0.0,
        attention_mask=None,
        training=False,
    ):
        given = self.context(z, t, decode)  # (batch, length, 2)
        x = self.project(ops.concatenate([z, self_condition, given], axis=-1))
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def get_config(self):
        sizes = ("vocabulary_size", "latent_dim", "width", "depth")
        return {**super().get_config(), **{name: getattr(self, name) for name in sizes}}


class Block(keras.layers.Layer):
    """A GRU over the positions, then a small MLP at each."""

    def __init__(self, width, **kwargs):
        super().__init__(**kwargs)
        self.gru_norm = keras.layers.LayerNormalization()
        self.gru = keras.layers.Bidirectional(keras.layers.GRU(width, return_sequences=True))
        self.mlp_norm = keras.layers.LayerNormalization()
        self.inner = keras.layers.Dense(4 * width, activation="gelu")
        self.outer = keras.layers.Dense(2 * width)

    def call(self, x):
        x = x + self.gru(self.gru_norm(x))
        return x + self.outer(self.inner(self.mlp_norm(x)))


def main(directory, quick=False):
    elf = grammar_model.new_model(directory, GRUNetwork, quick)
    grammar_model.train(elf, epochs=16, quick=quick)
    for scale in (1.0, 3.0):
        share = grammar_model.share(elf, self_cond_guidance_scale=scale)
        print(f"self-conditioning guidance {scale}: {share:.1%} grammatical")
    return elf


if __name__ == "__main__":
    grammar_model.run(main, __file__)
