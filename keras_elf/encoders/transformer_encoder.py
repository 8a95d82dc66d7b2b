"""A small encoder for the user's own text, trained from scratch and then frozen."""

import keras
from keras import ops

from keras_elf import checks
from keras_elf.encoders.text_encoder import TextEncoder
from keras_elf.layers import ELFBlock
from keras_elf.layers.attention import NORM_EPSILON


@keras.saving.register_keras_serializable(package="keras_elf")
class TransformerEncoder(TextEncoder):
    """Bidirectional transformer of ELF's own blocks over a token table.

    For text and languages without a pretrained T5: train it with
    `keras_elf.encoders.pretrain` (masked-token objective), which freezes it. The table
    has one row more than the vocabulary, the mask token of that objective.

    Args:
        vocabulary_size: int. Ids are in `[0, vocabulary_size)`.
        latent_dim: int. Width of the stream and of the latents.
        depth: int. Number of blocks. Defaults to `4`.
        num_heads: int. Heads; must divide `latent_dim` into even sizes. Defaults to `4`.
        **kwargs: `name`, `dtype` and `trainable`, see `TextEncoder`.

    Source: ELF, arXiv 2605.10938 (ablation: encoder trained from scratch).
    """

    mask_optional = True

    def __init__(self, vocabulary_size, latent_dim, depth=4, num_heads=4, **kwargs):
        super().__init__(vocabulary_size, latent_dim, **kwargs)
        self.depth = checks.integer("depth", depth, minimum=1)
        self.num_heads = num_heads
        policy = self.dtype_policy
        self.token_embedding = keras.layers.Embedding(
            self.vocabulary_size + 1,
            latent_dim,
            embeddings_initializer=keras.initializers.RandomNormal(stddev=0.05),
            dtype=policy,
            name="token_embedding",
        )
        self.blocks = [
            ELFBlock(latent_dim, num_heads, dtype=policy, name=f"blocks_{i}") for i in range(depth)
        ]
        self.norm = keras.layers.RMSNormalization(epsilon=NORM_EPSILON, dtype=policy, name="norm")
        self.token_embedding.build((None, None))
        for layer in (*self.blocks, self.norm):
            layer.build((None, None, latent_dim))
        self.seal()

    @property
    def mask_token_id(self):
        """Id of the mask token, outside the vocabulary."""
        return self.vocabulary_size

    def encode(self, token_ids, attention_mask):
        x = self.token_embedding(ops.cast(token_ids, "int32"))
        for block in self.blocks:
            x = block(x, attention_mask=attention_mask, training=False)
        return self.norm(x)

    @classmethod
    def parameter_count(cls, vocabulary_size, latent_dim, depth=4, **_):
        # Attention takes 4 matrices of the stream's width, SwiGLU 8.
        return vocabulary_size * latent_dim + depth * 12 * latent_dim**2

    def get_config(self):
        return {**super().get_config(), "depth": self.depth, "num_heads": self.num_heads}
