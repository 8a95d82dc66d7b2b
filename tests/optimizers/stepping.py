"""Run an optimizer by hand, compiled the way `fit` compiles it on each backend."""

import keras
import numpy as np


def variables_from(arrays):
    """Return one trainable variable for each `{name: array}`."""
    return [keras.Variable(np.asarray(a, "float32"), name=n) for n, a in arrays.items()]


def compiled_step(optimizer, variables):
    """Return a function of a list of gradient arrays that takes one compiled step in place."""
    optimizer.build(variables)
    backend = keras.backend.backend()
    if backend == "jax":
        import jax

        # Donated, as in `fit`: a buffer shared by two variables would be an error.
        pure = jax.jit(
            lambda values, state, grads: optimizer.stateless_apply(state, grads, values),
            donate_argnums=(0, 1),
        )

        def step(grads):
            values, state = [[v.value for v in vs] for vs in (variables, optimizer.variables)]
            new = pure(values, state, grads)
            for vs, results in zip((variables, optimizer.variables), new, strict=True):
                for v, result in zip(vs, results, strict=True):
                    v.assign(result)

        return step
    if backend == "tensorflow":
        import tensorflow as tf

        compiled = tf.function(lambda grads: optimizer.apply(grads, variables), jit_compile=True)
        return lambda grads: compiled([tf.constant(g) for g in grads])
    return lambda grads: optimizer.apply([keras.ops.convert_to_tensor(g) for g in grads], variables)


def values_of(variables):
    """Return the variables' values as NumPy arrays."""
    return [keras.ops.convert_to_numpy(v.value) for v in variables]


def averages_of(optimizer):
    """Return the averages as NumPy arrays, in the order of the trainable variables."""
    return values_of([average for _, average in optimizer.average_pairs()])


def random_gradients(arrays, steps, seed=0, scale=1.0):
    """Return `steps` lists of float32 gradients, one for each array."""
    rng = np.random.default_rng(seed)
    return [
        [np.float32(scale * rng.standard_normal(a.shape)) for a in arrays.values()]
        for _ in range(steps)
    ]


def worst_error(got, want):
    """Return the largest difference, relative to the largest entry of each array."""
    worst = 0.0
    for g, w in zip(got, want, strict=True):
        assert np.isfinite(g).all() and np.isfinite(w).all()
        worst = max(worst, np.abs(g - np.asarray(w)).max() / (np.abs(w).max() or 1.0))
    return worst
