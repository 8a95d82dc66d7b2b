"""Parts that a user might write, in a module that a fresh process must import."""

import keras
import keras_hub
from keras import ops

from keras_elf.models import ELFBackbone, ELFGenerator

PACKAGE = "keras_elf_own_parts"


@keras.saving.register_keras_serializable(package=PACKAGE)
class WarmGenerator(ELFGenerator):
    """Takes what it does not name by `*args` and `**kwargs`."""

    def __init__(self, *args, temperature=1.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.temperature = temperature

    def get_config(self):
        return {**super().get_config(), "temperature": self.temperature}


@keras.saving.register_keras_serializable(package=PACKAGE)
class ScaledBackbone(ELFBackbone):
    """A weight of its own on top of the network's."""

    def __init__(self, *args, factor=1.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.factor = factor
        self.gain = keras.layers.Dense(self.hidden_size, name="gain")
        self.gain.build((None, None, self.hidden_size))

    def hidden_states(self, *args, **kwargs):
        return self.factor * self.gain(super().hidden_states(*args, **kwargs))

    def get_config(self):
        return {**super().get_config(), "factor": self.factor}


class _Parts:
    """What the three kinds of network below share: a GRU over latents and time."""

    def _make(self, vocabulary_size, latent_dim, width):
        self.vocabulary_size, self.latent_dim, self.width = vocabulary_size, latent_dim, width
        self.mix = keras.layers.GRU(width, return_sequences=True, name="mix")
        self.denoising_head = keras.layers.Dense(latent_dim, name="denoising_head")
        self.unembedding = keras.layers.Dense(vocabulary_size, name="unembedding")

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
        previous = ops.zeros_like(z) if self_condition is None else self_condition
        shape = (ops.shape(z)[0], ops.shape(z)[1], 1)
        times, modes = (
            ops.broadcast_to(ops.reshape(ops.cast(x, "float32"), (-1, 1, 1)), shape)
            for x in (t, decode)
        )
        return self.mix(ops.concatenate([z, previous, times, modes], axis=-1))

    def _sizes(self):
        return {
            "vocabulary_size": self.vocabulary_size,
            "latent_dim": self.latent_dim,
            "width": self.width,
        }


@keras.saving.register_keras_serializable(package=PACKAGE)
class LayerNetwork(_Parts, keras.layers.Layer):
    """A plain layer, whose variables come with its first call."""

    def __init__(self, vocabulary_size, latent_dim, width, **kwargs):
        super().__init__(**kwargs)
        self._make(vocabulary_size, latent_dim, width)

    def get_config(self):
        return {**super().get_config(), **self._sizes()}


@keras.saving.register_keras_serializable(package=PACKAGE)
class ModelNetwork(_Parts, keras.Model):
    """A subclassed model."""

    def __init__(self, vocabulary_size, latent_dim, width, **kwargs):
        super().__init__(**kwargs)
        self._make(vocabulary_size, latent_dim, width)

    def get_config(self):
        return {**super().get_config(), **self._sizes()}


@keras.saving.register_keras_serializable(package=PACKAGE)
class HubNetwork(_Parts, keras_hub.models.Backbone):
    """A backbone of keras_hub that is none of ours."""

    def __init__(self, vocabulary_size, latent_dim, width, dtype=None, **kwargs):
        inputs = keras.Input((None, width), name="states")
        super().__init__(
            inputs=inputs,
            outputs=keras.layers.Dense(width, name="joint", dtype=dtype)(inputs),
            dtype=dtype,
            **kwargs,
        )
        self._make(vocabulary_size, latent_dim, width)

    def get_config(self):
        return {**super().get_config(), **self._sizes()}


NETWORKS = {"layer": LayerNetwork, "model": ModelNetwork, "hub": HubNetwork}
