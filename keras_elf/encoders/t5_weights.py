"""Where each array of a T5 checkpoint in `transformers` naming goes in a `T5Encoder`."""

import numpy as np

from keras_elf import named_arrays

# The encoder has no use for these; checkpoints of the whole model hold them.
IGNORED_PREFIXES = ("decoder.", "lm_head.")
_TABLE = "shared.weight"
_TABLE_ALIAS = "encoder.embed_tokens.weight"


def is_encoder_key(key):
    """Whether the array named `key` belongs to the encoder half of a T5 checkpoint."""
    return not key.startswith(IGNORED_PREFIXES)


def weight_map(encoder):
    """Map from checkpoint key to `(variable, transposed)` for every weight of the encoder.

    Args:
        encoder: `T5Encoder`.

    Returns:
        dict from str to `(keras.Variable, bool)`; `transposed` says that the checkpoint
        holds `(out, in)` where Keras holds `(in, out)`.
    """
    table = {
        _TABLE: (encoder.token_embedding.embeddings, False),
        "encoder.final_layer_norm.weight": (encoder.final_norm.weight, False),
    }
    for i, block in enumerate(encoder.blocks):
        attention, prefix = block.self_attention, f"encoder.block.{i}.layer"
        dense = {
            "0.SelfAttention.q": attention.query_projector,
            "0.SelfAttention.k": attention.key_projector,
            "0.SelfAttention.v": attention.value_projector,
            "0.SelfAttention.o": attention.output_projector,
            "1.DenseReluDense.wo": block.output_projector,
        }
        if encoder.use_gated_activation:
            dense["1.DenseReluDense.wi_0"] = block.input_projector
            dense["1.DenseReluDense.wi_1"] = block.gate_projector
        else:
            dense["1.DenseReluDense.wi"] = block.input_projector
        table |= {f"{prefix}.{k}.weight": (layer.kernel, True) for k, layer in dense.items()}
        table[f"{prefix}.0.layer_norm.weight"] = (block.self_attention_layer_norm.weight, False)
        table[f"{prefix}.1.layer_norm.weight"] = (block.layer_norm.weight, False)
        if i == 0:
            table[f"{prefix}.0.SelfAttention.relative_attention_bias.weight"] = (
                attention.relative_attention_bias,
                False,
            )
    return table


def assign_weights(encoder, arrays, source="the checkpoint"):
    """Assign a checkpoint's arrays to the encoder, all of them or, on an error, none.

    Args:
        encoder: `T5Encoder` with the hyper-parameters of the checkpoint.
        arrays: dict from checkpoint key to array. Keys of the decoder and of the language
            model head are passed over.
        source: str. Where the arrays came from, for messages.

    Raises:
        ValueError: if keys are missing, unknown or of another shape; it lists them. Or if
            values are not finite.
    """
    arrays = {key: array for key, array in arrays.items() if is_encoder_key(key)}
    problems = []
    if _TABLE_ALIAS in arrays:
        alias = arrays.pop(_TABLE_ALIAS)
        if not np.array_equal(arrays.setdefault(_TABLE, alias), alias):
            problems.append(f"{_TABLE} and {_TABLE_ALIAS} must be the same table, but differ")
    model = (
        f"this T5 encoder ({encoder.num_layers} layers, width {encoder.latent_dim}, gated: "
        f"{encoder.use_gated_activation})"
    )
    named_arrays.assign(weight_map(encoder), arrays, source, model, problems)
