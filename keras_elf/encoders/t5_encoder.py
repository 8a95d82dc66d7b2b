"""The encoder half of T5."""

import keras
from keras import ops

from keras_elf import checks
from keras_elf.encoders import t5_backbone, t5_files, t5_weights
from keras_elf.encoders.text_encoder import TextEncoder
from keras_elf.initialization import weights_to_come

_DTYPES = ("float32", "bfloat16", "mixed_bfloat16")


@keras.saving.register_keras_serializable(package="keras_elf")
class T5Encoder(TextEncoder):
    """The encoder of T5 1.0 (ReLU) or 1.1 (gated GELU), ELF's latent space.

    The latents are the last hidden states after the final layer norm, without dropout.
    Relative positions make packing exact: under a block-diagonal mask each document of a
    packed row gets the latents that it gets alone.

    The layers are those of `keras_hub.models.T5Backbone`, loaded when an encoder is
    built; the decoder is not kept. The constructor gives random weights; the class
    methods `from_preset` and `from_transformers` give pretrained ones, frozen.

    Args:
        vocabulary_size: int. Number of rows of the token table (32128 for the released T5).
        num_layers: int. Number of blocks.
        num_heads: int. Attention heads a block.
        latent_dim: int. Hidden size, the width of the latents.
        intermediate_dim: int. Inner width of the feed-forward part.
        key_value_dim: int. Width of a head. Defaults to `latent_dim // num_heads`.
        activation: `"relu"` (T5 1.0), `"gelu"` (the tanh form, T5 1.1) or `"gelu_exact"`.
            Defaults to `"relu"`.
        use_gated_activation: bool. Whether a second projection gates the first one, as in
            T5 1.1. Defaults to `False`.
        layer_norm_epsilon: float. Defaults to `1e-6`.
        dtype: `"float32"`, `"bfloat16"` or `"mixed_bfloat16"`. Defaults to `"float32"`,
            whatever the global policy. float16 is refused: T5's mask overflows there and
            every latent becomes NaN.
        backbone: `keras_hub.models.T5Backbone` with these hyper-parameters and this dtype,
            whose encoder layers are taken over instead of new ones; it is not usable
            afterwards. Defaults to `None`.
        **kwargs: `name` and `trainable`, see `TextEncoder`.

    Raises:
        ValueError: if an argument is out of range, the dtype is a float16 one, or
            `backbone` has other hyper-parameters.

    Example:

    ```python
    encoder = keras_elf.encoders.T5Encoder.from_preset("t5_small_multi")
    latents = encoder(token_ids, attention_mask)
    ```

    Source: T5, arXiv 1910.10683; ELF, arXiv 2605.10938 (frozen T5-small encoder).
    """

    mask_optional = True

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        num_heads,
        latent_dim,
        intermediate_dim,
        key_value_dim=None,
        activation="relu",
        use_gated_activation=False,
        layer_norm_epsilon=1e-6,
        dtype=None,
        backbone=None,
        **kwargs,
    ):
        super().__init__(vocabulary_size, latent_dim, dtype=_policy(dtype), **kwargs)
        self.num_layers = checks.integer("num_layers", num_layers, minimum=1)
        self.num_heads = checks.integer("num_heads", num_heads, minimum=1)
        self.intermediate_dim = checks.integer("intermediate_dim", intermediate_dim, minimum=1)
        if key_value_dim is None and latent_dim % num_heads:
            raise ValueError(
                "Without `key_value_dim`, `latent_dim` must be a multiple of `num_heads`. "
                f"Received: latent_dim={latent_dim}, num_heads={num_heads}"
            )
        self.key_value_dim = checks.integer(
            "key_value_dim", key_value_dim or latent_dim // num_heads, minimum=1
        )
        self.activation = checks.choice("activation", activation, t5_backbone.ACTIVATIONS)
        self.use_gated_activation = bool(use_gated_activation)
        self.layer_norm_epsilon = checks.number("layer_norm_epsilon", layer_norm_epsilon, minimum=0)
        if backbone is None:
            parts = t5_backbone.new_encoder(self)
        else:
            t5_backbone.check_fit(self, backbone)
            parts = t5_backbone.take_encoder(backbone)
        self.token_embedding, self.blocks, self.final_norm = parts
        self.seal()

    @classmethod
    def from_preset(cls, preset, dtype=None, **kwargs):
        """The encoder half of a keras-hub T5 preset, frozen.

        Args:
            preset: str. A name as `"t5_small_multi"`, a `kaggle://` or `hf://` handle, or
                the directory of a keras-hub preset.
            dtype: see `T5Encoder`. Defaults to `"float32"`, whatever the preset says.
            **kwargs: `name` and `trainable`. The latter defaults to `False`.

        Returns:
            `T5Encoder`.
        """
        config = t5_backbone.load_preset(preset, _policy(dtype))
        return cls(**config, **{"trainable": False, **kwargs})

    @classmethod
    def from_transformers(cls, directory, dtype=None, **kwargs):
        """A T5 encoder from the files that `transformers` writes, frozen.

        Args:
            directory: str or path. Holds config.json and model.safetensors, or its shards
                with model.safetensors.index.json. Pickled weights are never opened. The
                decoder, if there is one, is passed over.
            dtype: see `T5Encoder`. Defaults to `"float32"`.
            **kwargs: `name` and `trainable`. The latter defaults to `False`.

        Returns:
            `T5Encoder`.

        Raises:
            FileNotFoundError: if the directory or a file is missing.
            ValueError: if a file is damaged, the model is not a T5, or its arrays do not fit.
        """
        config = t5_files.read_config(directory)
        arrays = t5_files.read_arrays(directory)
        with weights_to_come():
            encoder = cls(**config, dtype=dtype, **{"trainable": False, **kwargs})
        t5_weights.assign_weights(encoder, arrays, source=str(directory))
        return encoder

    def encode(self, token_ids, attention_mask):
        x, length = self.token_embedding(token_ids), ops.shape(token_ids)[1]
        # The mask goes in with the position bias, which all blocks share: as an argument
        # of its own it makes Keras warn at every call that the mask will be lost.
        bias = self.blocks[0].self_attention.compute_bias(length, length)
        if attention_mask is not None:
            hidden = ops.cast(ops.logical_not(attention_mask), bias.dtype) * -1e9
            bias = bias + hidden[:, None, :, :]
        for block in self.blocks:
            x, _ = block(x, position_bias=bias, training=False)
        return self.final_norm(x)

    @classmethod
    def parameter_count(
        cls,
        vocabulary_size,
        latent_dim,
        num_layers,
        num_heads,
        intermediate_dim,
        key_value_dim=None,
        use_gated_activation=False,
        **_,
    ):
        heads_width = num_heads * key_value_dim if key_value_dim else latent_dim
        dense = 4 * heads_width + (2 + bool(use_gated_activation)) * intermediate_dim
        return latent_dim * (vocabulary_size + num_layers * dense)

    def get_config(self):
        return {
            **super().get_config(),
            "num_layers": self.num_layers,
            "num_heads": self.num_heads,
            "intermediate_dim": self.intermediate_dim,
            "key_value_dim": self.key_value_dim,
            "activation": self.activation,
            "use_gated_activation": self.use_gated_activation,
            "layer_norm_epsilon": self.layer_norm_epsilon,
        }


def _policy(dtype):
    policy = keras.dtype_policies.get("float32" if dtype is None else dtype)
    if policy.name not in _DTYPES:
        raise ValueError(
            f"T5 runs in one of {list(_DTYPES)}; in float16 its attention mask overflows and "
            f"every latent becomes NaN. Received: dtype={policy.name!r}"
        )
    return policy
