"""From token ids to standardised clean latents, with label drop."""

import contextlib

import keras
from keras import ops

from keras_elf import checks
from keras_elf.encoders.deferred_encoder import DeferredEncoder
from keras_elf.encoders.masks import encoder_attention_mask
from keras_elf.flow import clear


@keras.saving.register_keras_serializable(package="keras_elf")
class LatentEncoder(keras.layers.Layer):
    """`(encoder(ids) - latent_mean) / latent_std`, with the condition dropped at times.

    Label drop is drawn here, in the graph, since it acts before the encoder: in a dropped
    row the target may not see the condition, and the condition's latents are zeros. It is
    active in training only.

    Args:
        encoder: a `TextEncoder`, or a `DeferredEncoder` that is loaded when it is needed: at
            the first call, or when somebody asks for `encoder` or for all variables.
        latent_mean, latent_std: floats. Standardisation. Default to `0.0`, `0.2`, the
            published values for T5-small.
        label_drop_probability: float. Probability that a row loses its condition in
            training; `0.1` in published conditional models. Defaults to `0.0`.
        seed: int or `None`. Seed of the label drop.

    Call arguments:
        token_ids: int tensor `(batch, length)`.
        is_cond: bool or 0/1 tensor `(batch, length)`. The condition's positions.
        is_valid: bool or 0/1 tensor `(batch, length)`. Positions that are not padding.
        segments: int tensor `(batch, length)`. Number of the document of each token in packed
            rows, which then do not see each other. Defaults to `None`: one document a row.

    Returns:
        dict of `clean` (batch, length, latent_dim) float32 and `dropped` (batch,) bool.

    Source: ELF, arXiv 2605.10938 (latents; label drop of conditional tasks).
    """

    def __init__(
        self,
        encoder,
        latent_mean=0.0,
        latent_std=0.2,
        label_drop_probability=0.0,
        seed=None,
        **kwargs,
    ):
        super().__init__(dtype="float32", **kwargs)
        self.deferred = None
        if isinstance(encoder, DeferredEncoder):
            self.deferred = encoder
        else:
            self.encoder = encoder
        self.latent_mean = checks.number("latent_mean", latent_mean)
        self.latent_std = checks.number("latent_std", latent_std)
        if self.latent_std <= 0:
            raise ValueError(f"`latent_std` must be above 0. Received: {latent_std}")
        self.label_drop_probability = checks.probability(
            "label_drop_probability", label_drop_probability
        )
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.built = True

    def __getattr__(self, name):
        # Only what is missing comes here, such as the encoder while it is not loaded.
        if name == "encoder" and self.__dict__.get("deferred") is not None:
            if not self.deferred.is_left:
                return self.load_encoder()
        above = getattr(super(), "__getattr__", None)
        if above is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return above(name)

    def load_encoder(self):
        """The encoder, loaded now if it was not yet."""
        deferred = self.deferred
        if deferred is not None:
            encoder = deferred.load()
            # TensorFlow looks for the attribute before it sets it.
            with deferred.attaching(), deferred.left_unloaded():
                if self.deferred is not None:
                    self.encoder = encoder
                    self.deferred = None
        return self.encoder

    def left_unloaded(self):
        """A context in which, in this thread, nobody has the encoder loaded by looking."""
        none = contextlib.nullcontext()
        return none if self.deferred is None else self.deferred.left_unloaded()

    def _complete(self):
        if self.deferred is not None and not self.deferred.is_left:
            self.load_encoder()

    @property
    def variables(self):
        """All variables, those of the encoder too: it is loaded if it was not yet."""
        self._complete()
        return super().variables

    @property
    def weights(self):
        """All weights, those of the encoder too: it is loaded if it was not yet."""
        self._complete()
        return super().weights

    def save_own_variables(self, store):
        # Before Keras looks for the layers inside.
        self._complete()
        super().save_own_variables(store)

    def load_own_variables(self, store):
        self._complete()
        super().load_own_variables(store)

    def encoder_config(self):
        """The encoder as `keras.saving` serialises it, loaded or not."""
        if self.deferred is not None:
            return self.deferred.serialized
        return keras.saving.serialize_keras_object(self.encoder)

    def call(self, token_ids, is_cond, is_valid, segments=None, training=None):
        is_cond = ops.cast(is_cond, "bool")
        batch = ops.shape(token_ids)[0]
        dropped = None
        if training and self.label_drop_probability > 0:
            draws = keras.random.uniform((batch,), dtype="float32", seed=self.seed_generator)
            dropped = draws < self.label_drop_probability
        clean = self.encode(token_ids, is_cond, is_valid, dropped, segments)
        if dropped is None:
            dropped = ops.zeros((batch,), dtype="bool")
        return {"clean": clean, "dropped": dropped}

    def encode(self, token_ids, is_cond, is_valid, dropped=None, segments=None):
        """Clean latents under a given label drop `(batch,)`, or none, and segments, or none."""
        mask = encoder_attention_mask(is_cond, is_valid, dropped, segments)
        latents = self.encoder(token_ids, attention_mask=mask)
        clean = (ops.cast(latents, "float32") - self.latent_mean) / self.latent_std
        if dropped is None:
            return clean
        gone = ops.logical_and(ops.cast(is_cond, "bool"), dropped[:, None])
        return clear(clean, gone)

    def compute_output_spec(self, token_ids, is_cond, is_valid, segments=None, training=None):
        batch, length = token_ids.shape
        width = (self.deferred or self.encoder).latent_dim
        return {
            "clean": keras.KerasTensor((batch, length, width), dtype="float32"),
            "dropped": keras.KerasTensor((batch,), dtype="bool"),
        }

    def get_config(self):
        return {
            **super().get_config(),
            "encoder": self.encoder_config(),
            "latent_mean": self.latent_mean,
            "latent_std": self.latent_std,
            "label_drop_probability": self.label_drop_probability,
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config):
        config = {k: v for k, v in config.items() if k != "dtype"}
        config["encoder"] = keras.saving.deserialize_keras_object(config["encoder"])
        return cls(**config)
