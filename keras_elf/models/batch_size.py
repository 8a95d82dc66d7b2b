"""How many texts are sampled at once where nobody says."""

import os

import keras

MOST_ON_CPU, MOST_ON_ACCELERATOR = 32, 256
# Of the free memory; the estimate knows nothing of workspaces and fragments.
SHARE = 0.25


def fitting_rows(backbone, length, conditioned):
    """Rows that a sampling step is expected to have memory for: a power of two.

    Free memory is never twice the same, and a compiling backend compiles each number of rows
    anew: between powers of two the number is rounded down.

    Args:
        backbone: `ELFBackbone`.
        length: int. Tokens of a row.
        conditioned: bool. Whether guidance may double the rows.
    """
    free, most = free_memory()
    if free is None:
        return most
    fitting = int(SHARE * free // row_bytes(backbone, length, conditioned))
    return min(most, 2 ** max(0, fitting.bit_length() - 1))


def row_bytes(backbone, length, conditioned):
    """Estimated bytes that one row takes within a step, from the shapes.

    A block holds its stream, norm, projections, rotated heads and gated layer, and attention
    its scores where no fused kernel computes it; the flow arithmetic holds float32 latents.
    """
    positions = length + backbone.context_prefix.prefix_length()
    size = 2 if "16" in keras.backend.standardize_dtype(backbone.compute_dtype) else 4
    block = (12 + 2 * backbone.mlp_ratio) * backbone.hidden_size * size
    scores = backbone.num_heads * positions * (size + 4)
    latents = 8 * backbone.latent_dim * 4
    copies = (2 if conditioned else 1) * (1 if backbone.num_guidance_tokens else 2)
    return copies * positions * (block + scores + latents)


def free_memory():
    """`(bytes free where the backend computes, or None, most rows worth a batch there)`."""
    backend = keras.backend.backend()
    if backend == "torch":
        import torch

        if torch.cuda.is_available():
            return torch.cuda.mem_get_info()[0], MOST_ON_ACCELERATOR
    elif backend == "jax":
        import jax

        if jax.default_backend() != "cpu":
            found = jax.devices()[0].memory_stats() or {}
            if "bytes_limit" not in found:
                return None, MOST_ON_ACCELERATOR
            return found["bytes_limit"] - found["bytes_in_use"], MOST_ON_ACCELERATOR
    elif keras.distribution.list_devices("gpu"):
        # TensorFlow tells what is taken, not what there is.
        return None, MOST_ON_CPU
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), MOST_ON_CPU
    except (AttributeError, OSError, ValueError):
        return None, MOST_ON_CPU
