"""A pure function over a model's variables, compiled once on each backend."""

import keras


def compiled(function, variables, eager=False):
    """Compile `function(*args)`, which reads `variables` and changes none.

    JAX: `jax.jit` with the variables' values as arguments. TensorFlow: `tf.function` with
    XLA. PyTorch: as it is, without gradient recording.

    Args:
        function: takes and returns nests of tensors.
        variables: list of all Keras variables that it reads.
        eager: bool. Whether to leave it uncompiled (`run_eagerly`). Defaults to `False`.

    Returns:
        A callable with the arguments of `function`; NumPy arrays are accepted.
    """
    backend = keras.backend.backend()
    if backend == "torch":
        import torch

        call = torch.no_grad()(function)
    elif eager:
        call = function
    elif backend == "tensorflow":
        import tensorflow as tf

        call = tf.function(function, jit_compile=True)
    else:
        call = _jax_call(function, variables)

    def run(*args):
        return call(*keras.tree.map_structure(_tensor, args))

    return run


def _jax_call(function, variables):
    import jax

    @jax.jit
    def run(values, args):
        mapping = list(zip(variables, values, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            return function(*args)

    return lambda *args: run([v.value for v in variables], args)


def _tensor(x):
    return None if x is None else keras.ops.convert_to_tensor(x)
