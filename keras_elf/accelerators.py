"""Whether there is anything faster than a CPU to compute on."""

import keras


def has_accelerator():
    """Whether the backend computes on a GPU or TPU by default."""
    backend = keras.backend.backend()
    if backend == "torch":
        import torch

        return torch.cuda.is_available()
    if backend == "jax":
        import jax

        return jax.default_backend() != "cpu"
    return any(keras.distribution.list_devices(kind) for kind in ("gpu", "tpu"))
