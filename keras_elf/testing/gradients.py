"""Loss and gradients of a function of a model's variables, on every backend."""

import keras
import numpy as np
from keras import ops


class ValueAndGradients:
    """Compiled once: `(loss, [gradient])` as NumPy of `function(*args)`.

    Args:
        function: returns a scalar that depends on `variables`; takes nests of arrays.
        variables: list of Keras variables.
    """

    def __init__(self, function, variables):
        self.function, self.variables = function, variables
        self.compiled = getattr(self, f"_{keras.backend.backend()}")()

    def __call__(self, *args):
        loss, grads = self.compiled(keras.tree.map_structure(ops.convert_to_tensor, args))
        return float(loss), [ops.convert_to_numpy(g) for g in grads]

    def _torch(self):
        import torch

        def run(args):
            loss = self.function(*args)
            values = [v.value for v in self.variables]
            if not loss.requires_grad:  # Nothing was recorded, which PyTorch calls an error.
                return loss, [np.zeros(v.shape, "float32") for v in self.variables]
            grads = torch.autograd.grad(loss, values, allow_unused=True)
            zeros = [np.zeros(v.shape, "float32") for v in self.variables]
            return loss.detach(), [z if g is None else g for g, z in zip(grads, zeros, strict=True)]

        return run

    def _tensorflow(self):
        import tensorflow as tf

        @tf.function(jit_compile=True)
        def run(args):
            with tf.GradientTape() as tape:
                loss = self.function(*args)
            values = [v.value for v in self.variables]
            return loss, tape.gradient(loss, values, unconnected_gradients="zero")

        return run

    def _jax(self):
        import jax

        def loss(values, args):
            mapping = list(zip(self.variables, values, strict=True))
            with keras.StatelessScope(state_mapping=mapping):
                return self.function(*args)

        compiled = jax.jit(jax.value_and_grad(loss))
        return lambda args: compiled([v.value for v in self.variables], args)
