"""Encoders without context: a token table, frozen Gaussian or learned."""

import keras
import numpy as np

from keras_elf import checks
from keras_elf.encoders.text_encoder import TextEncoder


@keras.saving.register_keras_serializable(package="keras_elf")
class LearnedTable(TextEncoder):
    """A trainable token table as the encoder: the latent of a token is its row.

    The weakest latent space of the paper's ablation, and the one that needs nothing but
    the model itself: the gradients of the objective flow into the table. Attention masks
    are accepted and ignored, a token sees no other.

    The first rows are drawn with NumPy from the seed: equal on every backend.

    Args:
        vocabulary_size: int. Number of rows.
        latent_dim: int. Width of the latents.
        stddev: float. Standard deviation of the normal draws. Defaults to `0.2`, which the
            usual division by `latent_std=0.2` makes standard normal.
        seed: int in [0, 2**32). Seed of the draws. Defaults to `0`.
        **kwargs: `name`, `dtype` and `trainable`, see `TextEncoder`.

    Source: ELF, arXiv 2605.10938 (ablation of the latent space).
    """

    mask_optional = True
    meant_to_train = True

    def __init__(self, vocabulary_size, latent_dim, stddev=0.2, seed=0, **kwargs):
        super().__init__(vocabulary_size, latent_dim, **kwargs)
        self.stddev = checks.number("stddev", stddev, minimum=0)
        self.seed = checks.integer("seed", seed, minimum=0, maximum=2**32 - 1)
        self.token_embedding = keras.layers.Embedding(
            self.vocabulary_size,
            self.latent_dim,
            embeddings_initializer=self._draw,
            dtype=self.dtype_policy,
            name="token_embedding",
        )
        self.token_embedding.build((None, None))
        self.seal()

    def encode(self, token_ids, attention_mask):
        return self.token_embedding(token_ids)

    def get_config(self):
        return {**super().get_config(), "stddev": self.stddev, "seed": self.seed}

    def _draw(self, shape, dtype=None):
        # RandomState: the one NumPy generator whose stream is promised never to change.
        rows = np.random.RandomState(self.seed).standard_normal(shape) * self.stddev
        return keras.ops.convert_to_tensor(rows.astype("float32"), dtype=dtype)


@keras.saving.register_keras_serializable(package="keras_elf")
class GaussianTable(LearnedTable):
    """A frozen table of Gaussian rows as the encoder, one random vector a token.

    Attention masks are accepted and ignored, a token sees no other. The same seed gives
    the same table on every backend.

    Args:
        vocabulary_size: int. Number of rows.
        latent_dim: int. Width of the latents.
        stddev: float. Standard deviation of the rows' entries. Defaults to `0.2`, which
            the usual division by `latent_std=0.2` makes standard normal.
        seed: int in [0, 2**32). Seed of the draws. Defaults to `0`.
        trainable: bool. Defaults to `False`.
        **kwargs: `name` and `dtype`, see `TextEncoder`.

    Source: ELF, arXiv 2605.10938 (ablation of the latent space).
    """

    def __init__(self, vocabulary_size, latent_dim, stddev=0.2, seed=0, trainable=False, **kwargs):
        super().__init__(
            vocabulary_size, latent_dim, stddev=stddev, seed=seed, trainable=trainable, **kwargs
        )
