"""The smallest network that keeps the contract."""

import keras
from keras import ops

from keras_elf import checks
from keras_elf.denoiser import Denoiser


@keras.saving.register_keras_serializable(package="keras_elf")
class DummyDenoiser(Denoiser, keras.layers.Layer):
    """A few Dense layers on each token alone: for tests of samplers, guidance and objectives.

    It learns little about text, as no token sees another. Its heads have random weights from
    the start.

    Args:
        vocabulary_size: int. Defaults to `64`.
        latent_dim: int. Defaults to `16`.
        width: int. Of the hidden states. Defaults to `32`.
        takes_guidance_scale: bool. Whether it reads the self-conditioning guidance scale.
            Defaults to `False`.
        num_classes: int. With more than 0 it reads a `"label"` below that, which itself means
            "none". Defaults to `0`.

    Raises:
        ValueError: for sizes out of range.
    """

    def __init__(
        self,
        vocabulary_size=64,
        latent_dim=16,
        width=32,
        takes_guidance_scale=False,
        num_classes=0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocabulary_size = checks.integer("vocabulary_size", vocabulary_size, minimum=1)
        self.latent_dim = checks.integer("latent_dim", latent_dim, minimum=1)
        self.width = checks.integer("width", width, minimum=1)
        self.takes_guidance_scale = bool(takes_guidance_scale)
        self.num_classes = checks.integer("num_classes", num_classes, minimum=0)
        self.signals = {"label": self.num_classes} if self.num_classes else {}
        self.inner = keras.layers.Dense(self.width, activation="gelu", name="inner")
        self.denoising_head = keras.layers.Dense(self.latent_dim, name="denoising_head")
        self.unembedding = keras.layers.Dense(self.vocabulary_size, name="unembedding")
        numbers = 2 + self.takes_guidance_scale
        self.inner.build((None, None, 2 * self.latent_dim + numbers))
        self.denoising_head.build((None, None, self.width))
        self.unembedding.build((None, None, self.width))
        self.labels = None
        if self.num_classes:
            self.labels = keras.layers.Embedding(self.num_classes + 1, self.width, name="labels")
            self.labels.build((None,))
        self.built = True

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
        signals=None,
    ):
        if self_condition is None:
            self_condition = ops.zeros_like(z)
        given = [t, decode]
        if self.takes_guidance_scale:
            given.append(1.0 if guidance_scale is None else guidance_scale)
        x = ops.concatenate([z, self_condition, self.context(z, *given)], axis=-1)
        hidden = self.inner(x)
        if self.labels is None:
            return hidden
        label = (signals or {}).get("label")
        if label is None:
            label = self.num_classes
        tokens = self.labels(ops.reshape(ops.cast(label, "int32"), (-1,)))
        return hidden + ops.cast(tokens[:, None, :], hidden.dtype)

    def call(self, z, t, **options):
        return self.hidden_states(z, t, **options)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "latent_dim": self.latent_dim,
            "width": self.width,
            "takes_guidance_scale": self.takes_guidance_scale,
            "num_classes": self.num_classes,
        }
