"""The sizes of a released network, read from the shapes of its arrays."""

import math
import re

from keras_elf.checkpoints.names import is_transposed, variable_path

_BLOCK = re.compile(r"blocks_(\d+)/")


def backbone_sizes(arrays):
    """Constructor arguments of the `ELFBackbone` that arrays belong to.

    Args:
        arrays: dict from released name to what has a `shape`.

    Returns:
        dict of `vocabulary_size`, `latent_dim`, `depth`, `hidden_size`, `num_heads`,
        `mlp_ratio`, `bottleneck_dim`, `num_time_tokens`, `num_guidance_tokens` and
        `num_mode_tokens`.

    Raises:
        ValueError: if arrays that tell a size are missing or of an impossible shape.
    """
    shapes = {
        variable_path(name): tuple(a.shape)[::-1] if is_transposed(name) else tuple(a.shape)
        for name, a in arrays.items()
    }

    def axis(path, index, rank):
        shape = shapes.get(path)
        if shape is None or len(shape) != rank or not shape[index] > 0:
            raise ValueError(
                "These arrays are not those of an ELF network: the variable "
                f"{path!r} must have {rank} axes. Received: {shape or 'none of this name'}"
            )
        return shape[index]

    hidden_size = axis("text_proj/proj2/kernel", 1, 2)
    head_size = axis("blocks_0/attn/q_norm/scale", 0, 1)
    if hidden_size % head_size:
        raise ValueError(
            f"Heads of size {head_size} do not divide the hidden size {hidden_size} of these arrays"
        )
    blocks = {int(match[1]) for path in shapes if (match := _BLOCK.match(path))}
    has_guidance = "context_prefix/guidance_tokens" in shapes
    return {
        "vocabulary_size": axis("unembedding/unembed/kernel", 1, 2),
        "latent_dim": axis("text_proj/proj1/kernel", 0, 2),
        "depth": len(blocks),
        "hidden_size": hidden_size,
        "num_heads": hidden_size // head_size,
        "mlp_ratio": _mlp_ratio(axis("blocks_0/mlp/w3/kernel", 0, 2), hidden_size),
        "bottleneck_dim": axis("text_proj/proj1/kernel", 1, 2),
        "num_time_tokens": axis("context_prefix/time_tokens", 1, 3),
        "num_guidance_tokens": axis("context_prefix/guidance_tokens", 1, 3) if has_guidance else 0,
        "num_mode_tokens": axis("context_prefix/mode_tokens", 1, 3),
    }


def _mlp_ratio(inner, hidden_size):
    """The ratio that gives SwiGLU its inner width, the published 4 where that does."""
    for ratio in (4.0, (math.ceil(1.5 * inner) + 0.5) / hidden_size):
        if int(int(hidden_size * ratio) * 2 / 3) == inner:
            return ratio
    raise ValueError(f"No mlp_ratio gives SwiGLU the inner width {inner} of these arrays")


def check_sizes(found, expected, source, preset):
    """Raise `ValueError` listing the sizes in which `found` differs from `expected`."""
    wrong = [
        f"{name} is {value}, the preset has {expected[name]}"
        for name, value in found.items()
        if value != expected.get(name)
    ]
    if wrong:
        raise ValueError(
            f"{source} is not a checkpoint of the preset {preset!r}: {'; '.join(wrong)}. Name the "
            "preset that it belongs to, or none to take the sizes from the arrays"
        )
