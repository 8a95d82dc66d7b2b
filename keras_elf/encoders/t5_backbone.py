"""Builds and loads `keras_hub.models.T5Backbone`, and takes the encoder out of it."""

import contextlib
import pathlib
import warnings

import keras
from keras import ops

from keras_elf import checks, hub


def _tanh_gelu(x):
    return ops.gelu(x, approximate=True)


ACTIVATIONS = {
    "relu": keras.activations.relu,
    "gelu": _tanh_gelu,
    "gelu_exact": keras.activations.gelu,
}
# keras-hub's functions, by name.
_BACKBONE_ACTIVATIONS = {"relu": "relu", "gelu_approximate": "gelu", "gelu": "gelu_exact"}


def new_encoder(encoder):
    """Random layers with the hyper-parameters of a `T5Encoder`, as `take_encoder` gives them.

    A whole `T5Backbone` would cost a decoder and a graph through all of its layers. One of a
    single layer gives the table, the first block, the norm and the class of the other blocks.
    """
    from keras_elf.keras_hub_quietly import keras_hub

    common = {
        "num_heads": encoder.num_heads,
        "hidden_dim": encoder.latent_dim,
        "intermediate_dim": encoder.intermediate_dim,
        "key_value_dim": encoder.key_value_dim,
        "dropout": 0.0,
        "activation": ACTIVATIONS[encoder.activation],
        "use_gated_activation": encoder.use_gated_activation,
        "layer_norm_epsilon": encoder.layer_norm_epsilon,
        "dtype": encoder.dtype_policy,
    }
    with _no_mask_warnings():
        backbone = keras_hub.models.T5Backbone(
            vocabulary_size=encoder.vocabulary_size, num_layers=1, **common
        )
        embedding, blocks, norm = take_encoder(backbone)
        x = keras.Input((None, encoder.latent_dim), dtype=encoder.compute_dtype)
        bias = keras.Input((encoder.num_heads, None, None), dtype=encoder.compute_dtype)
        for i in range(1, encoder.num_layers):
            block = type(blocks[0])(
                is_decoder=False,
                use_relative_attention_bias=False,
                name=f"transformer_encoder_layer_{i}",
                **common,
            )
            block(x, position_bias=bias)
            blocks.append(block)
    _forget_graph(blocks)
    return embedding, blocks, norm


def load_preset(preset, policy):
    """The constructor arguments of `T5Encoder`, `backbone` among them, from a preset.

    Args:
        preset: str. Name, handle or directory of a keras-hub T5 preset.
        policy: `keras.DTypePolicy` to load it in.

    Returns:
        dict of arguments.

    Raises:
        keras_elf.hub.HubError: if an `hf://` handle cannot be downloaded.
        ValueError: if `preset` is a directory of `transformers`, or its activation is not
            one of those of `T5Encoder`.
    """
    from keras_elf.keras_hub_quietly import keras_hub

    if str(preset).startswith("hf://"):
        # keras-hub would try again for half a minute, and then speak of a missing file.
        preset = hub.snapshot(str(preset))
        if not (pathlib.Path(preset) / "metadata.json").is_file():
            raise ValueError(
                "The repository holds no keras-hub preset (no metadata.json). Download it, and use "
                "`T5Encoder.from_transformers` for files of `transformers`."
            )
    directory = pathlib.Path(preset)
    if directory.is_dir() and any(directory.glob("*.safetensors*")):
        raise ValueError(
            f"{preset} is a directory of `transformers`, not a keras-hub preset. "
            "Use `T5Encoder.from_transformers`."
        )
    with _no_mask_warnings():
        backbone = keras_hub.models.T5Backbone.from_preset(
            str(preset), dtype=policy.name, dropout=0.0
        )
    name = getattr(backbone.activation, "__name__", str(backbone.activation))
    checks.choice("activation of the preset", name, _BACKBONE_ACTIVATIONS)
    return {
        "vocabulary_size": backbone.vocabulary_size,
        "num_layers": backbone.num_layers,
        "num_heads": backbone.num_heads,
        "latent_dim": backbone.hidden_dim,
        "intermediate_dim": backbone.intermediate_dim,
        "key_value_dim": backbone.key_value_dim,
        "activation": _BACKBONE_ACTIVATIONS[name],
        "use_gated_activation": backbone.use_gated_activation,
        "layer_norm_epsilon": backbone.layer_norm_epsilon,
        "dtype": policy,
        "backbone": backbone,
    }


def check_fit(encoder, backbone):
    """Raise `ValueError` if the backbone has other hyper-parameters than the encoder."""
    heads = backbone.num_heads
    pairs = {
        "vocabulary_size": (encoder.vocabulary_size, backbone.vocabulary_size),
        "num_layers": (encoder.num_layers, backbone.num_layers),
        "num_heads": (encoder.num_heads, heads),
        "latent_dim": (encoder.latent_dim, backbone.hidden_dim),
        "intermediate_dim": (encoder.intermediate_dim, backbone.intermediate_dim),
        "key_value_dim": (
            encoder.key_value_dim,
            backbone.key_value_dim or backbone.hidden_dim // heads,
        ),
        "use_gated_activation": (encoder.use_gated_activation, backbone.use_gated_activation),
        "dtype": (encoder.dtype_policy.name, backbone.dtype_policy.name),
    }
    wrong = [f"{name} {a!r} != {b!r}" for name, (a, b) in pairs.items() if a != b]
    if wrong:
        raise ValueError(
            "`backbone` must have the hyper-parameters given to the T5Encoder. "
            f"Received (encoder != backbone): {', '.join(wrong)}"
        )


def take_encoder(backbone):
    """The token embedding, the blocks and the final norm; nothing of them holds the decoder.

    Args:
        backbone: `T5Backbone`. Not usable afterwards.

    Returns:
        Tuple of a layer, a list of layers and a layer.
    """
    # An untied embedding owns the decoder's output matrix too: keep its input table alone.
    tied = backbone.tie_embedding_weights
    embedding = backbone.token_embedding if tied else _copied_table(backbone.token_embedding)
    blocks, norm = list(backbone.encoder_transformer_layers), backbone.encoder_layer_norm
    # Each layer remembers the graph it was called in, and with it the whole decoder.
    _forget_graph((embedding, *blocks, norm))
    return embedding, blocks, norm


def _forget_graph(layers):
    for layer in layers:
        for attribute in ("_inbound_nodes", "_outbound_nodes"):
            getattr(layer, attribute, []).clear()


def _copied_table(source):
    table = keras.layers.Embedding(
        source.input_dim, source.output_dim, dtype=source.dtype_policy, name="token_embedding"
    )
    table.build((None, None))
    # By way of NumPy: on JAX two variables would share one buffer, which the next
    # compiled step of either may free.
    table.embeddings.assign(ops.convert_to_numpy(source.embeddings))
    return table


@contextlib.contextmanager
def _no_mask_warnings():
    # The backbone's own layers warn of Keras masks that they neither get nor need.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*does not support masking.*")
        yield
