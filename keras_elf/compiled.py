"""A pure function over a model's variables, compiled once on each backend."""

import collections

import keras

# Functions kept by a cache; the oldest go first.
MOST_FUNCTIONS = 32


def compiled(function, variables, eager=False):
    """Compile `function(*args)`, which reads `variables` and changes none.

    JAX: `jax.jit` with the variables' values as arguments. TensorFlow: `tf.function` with
    XLA. PyTorch: as it is, without gradient recording.

    Args:
        function: takes and returns nests of tensors.
        variables: list of all Keras variables that it reads.
        eager: bool. Whether to leave it uncompiled (`run_eagerly`). Defaults to `False`.

    Returns:
        A callable with the arguments of `function`; NumPy arrays are accepted. Its keyword
        `values`, a list of tensors, stands in for the present values of `variables`, which
        stay untouched: two threads may call it with different ones.
    """
    backend, variables = keras.backend.backend(), list(variables)

    def with_values(values, args):
        if values is None:
            return function(*args)
        with keras.StatelessScope(state_mapping=list(zip(variables, values, strict=True))):
            return function(*args)

    if backend == "torch":
        import torch

        call = torch.no_grad()(with_values)
    elif eager:
        call = with_values
    elif backend == "tensorflow":
        import tensorflow as tf

        call = tf.function(with_values, jit_compile=True)
    else:
        import jax

        call = jax.jit(with_values)

    def run(*args, values=None):
        if values is None and backend == "jax":
            values = [v.value for v in variables]
        return call(values, keras.tree.map_structure(_tensor, args))

    return run


class CompiledFunctions:
    """Compiled functions by what they were made from.

    A changed setting makes another key and so another function; so do other variables, since
    LoRA and quantisation replace them.

    Args:
        eager: bool. Whether functions stay uncompiled.
    """

    def __init__(self, eager=False):
        self.eager = bool(eager)
        self._functions = collections.OrderedDict()

    def get(self, key, make, variables):
        """The function under `key`, or `make()` compiled and kept.

        Args:
            key: hashable that differs wherever `make` would build something different; see
                `keras_elf.configurable.signature`.
            make: gives the function to compile.
            variables: list of the Keras variables that it reads.
        """
        variables = list(variables)
        key = key, tuple(id(v) for v in variables)
        entry = self._functions.get(key)
        if entry is None:
            # The variables are kept with it, so that their ids stay theirs.
            entry = compiled(make(), variables, self.eager), variables
            self._functions[key] = entry
            while len(self._functions) > MOST_FUNCTIONS:
                self._functions.popitem(last=False)
        return entry[0]


def _tensor(x):
    return None if x is None else keras.ops.convert_to_tensor(x)
