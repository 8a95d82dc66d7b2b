"""The interface that all text encoders share."""

import keras
from keras import ops

from keras_elf import checks
from keras_elf.layers.parts import register_parts


@keras.saving.register_keras_serializable(package="keras_elf")
class TextEncoder(keras.layers.Layer):
    """Base class of the encoders that turn token ids into one latent vector a token.

    ELF works in the space of a text encoder that is not trained along with it. A subclass
    creates all its variables in its constructor, ends that constructor with `self.seal()`
    and implements `encode(token_ids, attention_mask)`. This class does the rest: masks of
    any accepted form, no dropout, float32 latents, no gradient into a frozen encoder.

    The latents are what the encoder gives; their standardisation (`latent_mean`,
    `latent_std`) belongs to the model that uses them.

    Frozen means frozen: `trainable = True` set on a model around the encoder, as Keras
    itself does when it loads a functional model, does not reach the weights of a frozen
    encoder. `unfreeze()` does.

    Args:
        vocabulary_size: int. Number of rows of the token table. Token ids lie in
            `[0, vocabulary_size)`.
        latent_dim: int. Width of the latents.
        dtype: str or `keras.DTypePolicy`. Defaults to `"float32"`, whatever the global
            policy, so that a mixed-precision model keeps exact latents.
        **kwargs: `name` and `trainable`. With `trainable=False` the encoder is frozen.

    Call arguments:
        token_ids: integer tensor `(batch, length)`.
        attention_mask: bool, int or float tensor (nonzero means visible), `(batch, length)`
            with the visible columns, or `(batch, length, length)` where entry `[q, k]` says
            whether row q may see column k. Defaults to `None`: every token sees all.
        training: ignored for the encoder itself, which always runs as in inference.

    Returns:
        float32 tensor `(batch, length, latent_dim)`.

    Raises:
        ValueError: if a shape or the dtype of the token ids does not fit.

    Attributes:
        token_embedding: the layer that owns the `(rows, latent_dim)` token table, to which
            an unembedding can be tied; `None` if there is none.
        mask_optional: bool, set by the subclass. If `True`, `encode` accepts `None` for
            "all see all" and is spared a `(batch, length, length)` tensor of ones.
        meant_to_train: bool. Whether `ELFGenerator` may train the encoder along without a
            warning; `unfreeze()` sets it.

    Source: ELF, arXiv 2605.10938 (the latent space of a frozen encoder).
    """

    mask_optional = False
    meant_to_train = False

    def __init__(self, vocabulary_size, latent_dim, dtype=None, **kwargs):
        super().__init__(dtype="float32" if dtype is None else dtype, **kwargs)
        self.vocabulary_size = checks.integer("vocabulary_size", vocabulary_size, minimum=1)
        self.latent_dim = checks.integer("latent_dim", latent_dim, minimum=1)
        self.token_embedding = None
        # Layers take a `training` that nobody passed from the last layer that was given
        # one, siblings included. Passing the values through a layer that does nothing
        # switches the encoder to inference, and its neighbours back again.
        self.training_switch = keras.layers.Dropout(0.0, dtype="float32", name="training_switch")

    def seal(self):
        """Mark all variables as created; freeze them if built with `trainable=False`."""
        self.built = True
        register_parts(self)
        if not self.trainable:
            self.freeze()

    def freeze(self):
        """Make every variable untrainable, for good: only `unfreeze()` reverts it."""
        self._frozen = True
        # The setter itself: on TensorFlow an assignment of the value that is already
        # there is skipped, and so never reaches sublayers made after it.
        keras.layers.Layer.trainable.fset(self, False)
        # One by one: a model collects its variables by their own flags.
        for variable in self.variables:
            variable.trainable = False

    def unfreeze(self):
        """Make the variables trainable again, and train them along from here on."""
        self._frozen, self.meant_to_train = False, True
        keras.layers.Layer.trainable.fset(self, True)

    @property
    def frozen(self):
        """Whether the encoder is frozen: no trainable variable, no gradient."""
        return getattr(self, "_frozen", False)

    @property
    def trainable(self):
        """Whether the variables train. Setting it to `True` needs `unfreeze()` if frozen."""
        return self._trainable

    @trainable.setter
    def trainable(self, value):
        if not (value and self.frozen):
            keras.layers.Layer.trainable.fset(self, value)

    def encode(self, token_ids, attention_mask):
        """Latents of `token_ids`; the mask is bool `(batch, length, length)`.

        `None` can stand in for the mask where `mask_optional` is set.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement `encode`.")

    def call(self, token_ids, attention_mask=None, training=None):
        self._check_inputs(token_ids, attention_mask)
        token_ids = self.training_switch(ops.cast(token_ids, "int32"), training=False)
        if attention_mask is None and not self.mask_optional:
            attention_mask = ops.ones_like(token_ids, dtype="bool")
        if attention_mask is not None:
            attention_mask = _full_mask(token_ids, attention_mask)
        latents = ops.cast(self.encode(token_ids, attention_mask), "float32")
        if self.frozen:
            latents = ops.stop_gradient(latents)
        return self.training_switch(latents, training=training)

    def compute_output_spec(self, token_ids, attention_mask=None, training=None):
        # Without this the body would be traced, and a length of None cannot be.
        self._check_inputs(token_ids, attention_mask)
        return keras.KerasTensor((*token_ids.shape, self.latent_dim), dtype="float32")

    def compute_output_shape(self, token_ids_shape, attention_mask_shape=None):
        return (*token_ids_shape, self.latent_dim)

    @classmethod
    def parameter_count(cls, vocabulary_size, latent_dim, **_):
        """Number of weights that a configuration asks for, at least, without making them.

        The arguments are those of the constructor. A preset whose files cannot hold as many
        weights is refused before anything is allocated.
        """
        return vocabulary_size * latent_dim

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "latent_dim": self.latent_dim,
        }

    def _check_inputs(self, token_ids, attention_mask):
        ids = tuple(token_ids.shape)
        if len(ids) != 2:
            raise ValueError(f"`token_ids` must have shape (batch, length). Received: {ids}")
        if "int" not in keras.backend.standardize_dtype(token_ids.dtype):
            raise ValueError(f"`token_ids` must be integers. Received dtype: {token_ids.dtype}")
        if attention_mask is None:
            return
        mask = tuple(attention_mask.shape)
        allowed = {2: ids, 3: (*ids, ids[1])}.get(len(mask), ())
        fits = [a is None or b is None or a == b for a, b in zip(mask, allowed, strict=False)]
        if not fits or not all(fits):
            raise ValueError(
                "`attention_mask` must have shape (batch, length) or (batch, length, length) "
                f"with those of token_ids {ids}. Received: {mask}"
            )


def _full_mask(token_ids, attention_mask):
    mask = ops.cast(attention_mask, "bool")
    if len(mask.shape) == 3:
        return mask
    batch, length = ops.shape(token_ids)
    return ops.broadcast_to(mask[:, None, :], (batch, length, length))
