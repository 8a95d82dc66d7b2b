"""Where each array of a T5 checkpoint in `transformers` naming goes in a `T5Encoder`."""

import numpy as np

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
        ValueError: if keys are missing, unknown or of another shape; it lists them.
    """
    arrays = {key: array for key, array in arrays.items() if is_encoder_key(key)}
    problems = []
    if _TABLE_ALIAS in arrays:
        alias = arrays.pop(_TABLE_ALIAS)
        if not np.array_equal(arrays.setdefault(_TABLE, alias), alias):
            problems.append(f"{_TABLE} and {_TABLE_ALIAS} must be the same table, but differ")
    expected = weight_map(encoder)
    problems += _listed("missing", sorted(set(expected) - set(arrays)))
    problems += _listed("unknown", sorted(set(arrays) - set(expected)))
    shapes = []
    for key in sorted(set(arrays) & set(expected)):
        variable, transposed = expected[key]
        wanted = tuple(variable.shape)[::-1] if transposed else tuple(variable.shape)
        if tuple(arrays[key].shape) != wanted:
            shapes.append(f"{key} is {tuple(arrays[key].shape)}, expected {wanted}")
    problems += _listed("of another shape", shapes)
    if problems:
        raise ValueError(
            f"The arrays of {source} do not fit this T5 encoder ({encoder.num_layers} layers, "
            f"width {encoder.latent_dim}, gated: {encoder.use_gated_activation}):\n- "
            + "\n- ".join(problems)
        )
    for key, (variable, transposed) in expected.items():
        array = np.asarray(arrays[key]).astype("float32")
        variable.assign(array.T if transposed else array)


def _listed(kind, names, limit=20):
    if not names:
        return []
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return [f"{len(names)} {kind}: {', '.join(names[:limit])}{more}"]
