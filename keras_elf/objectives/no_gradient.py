"""Forward passes that keep nothing for a backward pass."""

import contextlib

import keras
from keras import ops


def without_gradient(function, *args, **kwargs):
    """`function(*args, **kwargs)` as a constant of the loss.

    `stop_gradient` alone would let PyTorch store every activation of the pass; there the
    pass runs with gradient recording off. JAX and TensorFlow never build the backward
    pass of a stopped result.
    """
    with _recording_off():
        result = function(*args, **kwargs)
    return keras.tree.map_structure(ops.stop_gradient, result)


def _recording_off():
    if keras.backend.backend() == "torch":
        import torch

        return torch.no_grad()
    return contextlib.nullcontext()
