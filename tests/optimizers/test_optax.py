"""Twenty steps beside optax, an implementation written by others."""

import numpy as np
import pytest

from keras_elf.optimizers import AdamW, Muon
from tests.optimizers.stepping import (
    compiled_step,
    random_gradients,
    values_of,
    variables_from,
    worst_error,
)

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

SHAPES = {
    "wide": (6, 20),
    "wide_again": (6, 20),
    "tall": (20, 6),
    "square": (8, 8),
    "row": (1, 9),
    "embedding": (37, 5),
    "bias": (7,),
    "tokens": (1, 4, 8),
    "scalar": (),
}


def optax_run(transform, arrays, gradients):
    @jax.jit
    def step(params, state, grads):
        updates, state = transform.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    params = list(arrays.values())
    state = transform.init(params)
    for grads in gradients:
        params, state = step(params, state, grads)
    return params


def start(seed=3):
    rng = np.random.default_rng(seed)
    return {name: np.float32(rng.standard_normal(shape)) for name, shape in SHAPES.items()}


@pytest.mark.parametrize("decays", [(None, None), (0.1, 0.03)])
def test_muon(decays):
    arrays = start()
    gradients = random_gradients(arrays, 20, scale=0.2)
    gradients[4] = [np.zeros_like(g) for g in gradients[4]]
    weight_decay, adam_weight_decay = decays
    theirs = optax.contrib.muon(
        2e-2, weight_decay=weight_decay or 0.0, adam_weight_decay=adam_weight_decay or 0.0
    )
    want = optax_run(optax.chain(optax.clip_by_global_norm(1.0), theirs), arrays, gradients)
    variables = variables_from(arrays)
    step = compiled_step(
        Muon(2e-2, weight_decay=weight_decay, adam_weight_decay=adam_weight_decay), variables
    )
    for grads in gradients:
        step(grads)
    assert worst_error(values_of(variables), want) < 5e-6


def test_adamw_with_tiny_gradients():
    """At this size epsilon matters, and where it is added."""
    arrays = start()
    gradients = random_gradients(arrays, 20, scale=1e-8)
    want = optax_run(optax.adamw(1e-2, b1=0.9, b2=0.95, weight_decay=0.1), arrays, gradients)
    variables = variables_from(arrays)
    step = compiled_step(AdamW(1e-2, weight_decay=0.1), variables)
    for grads in gradients:
        step(grads)
    assert worst_error(values_of(variables), want) < 5e-6
