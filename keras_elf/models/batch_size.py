"""How many texts are sampled at once where nobody says."""

import contextlib
import pathlib

import keras

from keras_elf.accelerators import has_accelerator

MOST_ON_CPU, MOST_ON_ACCELERATOR = 32, 256
# Of the free memory; the estimate knows nothing of workspaces and fragments.
SHARE = 0.25
CONTROL_GROUP = pathlib.Path("/sys/fs/cgroup")


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
    if not has_accelerator():
        found = [n for n in (_available_to_machine(), _available_to_container()) if n is not None]
        return (min(found) if found else None), MOST_ON_CPU
    backend = keras.backend.backend()
    if backend == "torch":
        import torch

        # What PyTorch keeps for itself without using it can be had as well.
        kept = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
        return torch.cuda.mem_get_info()[0] + kept, MOST_ON_ACCELERATOR
    if backend == "jax":
        import jax

        found = jax.devices()[0].memory_stats() or {}
        if "bytes_limit" not in found:
            return None, MOST_ON_ACCELERATOR
        return found["bytes_limit"] - found["bytes_in_use"], MOST_ON_ACCELERATOR
    # TensorFlow tells what is taken, not what there is.
    return None, MOST_ON_CPU


def _available_to_machine():
    """Bytes that Linux can give, its caches of files included; `None` on other systems."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    return None


def _available_to_container():
    """Bytes left of the limit that a container sets, `None` without one."""
    with contextlib.suppress(OSError, ValueError):
        limit, used = (int((CONTROL_GROUP / f"memory.{n}").read_text()) for n in ("max", "current"))
        return max(limit - used, 0)
    return None
