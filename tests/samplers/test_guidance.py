"""Guidance: what is asked of the network, in one call, and how the answers are combined."""

import numpy as np
import pytest
from keras import ops

from keras_elf import flow
from keras_elf.samplers import guided_clean
from tests.samplers.walking import CONDITION, IS_COND, ROWS, SHAPE

Z, SELF = np.random.default_rng(1).standard_normal((2, ROWS, *SHAPE)).astype("float32")
T, C, W = np.float32(0.3), np.float32(2.0), np.float32(3.0)
Z[IS_COND] = SELF[IS_COND] = CONDITION[IS_COND]
CLEARED = np.where(IS_COND[..., None], 0, Z), np.where(IS_COND[..., None], 0, SELF)
PINNED = np.where(IS_COND[..., None], CONDITION, 0).astype("float32")
ZEROS = np.zeros_like(Z)


def network(z, self_condition, t):
    """Nonlinear in both inputs, and each position sees its whole row."""
    return 0.3 * z + 0.5 * self_condition**2 + 0.1 * (z + self_condition).sum(1, keepdims=True) + t


class Network:
    """`network` on tensors; remembers what it was called with."""

    def __init__(self):
        self.batches = []

    def __call__(self, z, self_condition, t):
        z, self_condition = ops.convert_to_numpy(z), ops.convert_to_numpy(self_condition)
        self.batches.append(len(z))
        return ops.convert_to_tensor(network(z, self_condition, T).astype("float32"))


def guided(c=None, w=None, conditional=True):
    condition, is_cond = (CONDITION, IS_COND) if conditional else (None, None)
    predict = Network()
    z, self_condition = ops.convert_to_tensor(Z), ops.convert_to_tensor(SELF)
    if conditional:
        condition, is_cond = ops.convert_to_tensor(CONDITION), ops.convert_to_tensor(IS_COND)
    out = guided_clean(predict, z, self_condition, T, condition, is_cond, c, w)
    return ops.convert_to_numpy(out), predict.batches


def pinned(x):
    return np.where(IS_COND[..., None], CONDITION, x)


def self_guided(z, self_condition, without):
    u = network(z, without, T)
    return u + W * (network(z, self_condition, T) - u)


CASES = {
    "none": ({}, 1, pinned(network(Z, SELF, T))),
    "condition": (
        {"c": C},
        2,
        pinned(network(*CLEARED, T) + C * (network(Z, SELF, T) - network(*CLEARED, T))),
    ),
    "self-condition": ({"w": W}, 2, pinned(self_guided(Z, SELF, PINNED))),
    "both": (
        {"c": C, "w": W},
        4,
        pinned(
            self_guided(*CLEARED, ZEROS)
            + C * (self_guided(Z, SELF, PINNED) - self_guided(*CLEARED, ZEROS))
        ),
    ),
    "unconditional": ({"conditional": False}, 1, network(Z, SELF, T)),
    "unconditional, self-condition": (
        {"w": W, "conditional": False},
        2,
        self_guided(Z, SELF, ZEROS),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_one_call_and_the_formula(case):
    arguments, parts, expected = CASES[case]
    out, batches = guided(**arguments)
    assert batches == [parts * ROWS]
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("scale", ["c", "w"])
def test_scale_one_is_no_guidance(scale):
    out, _ = guided(**{scale: np.float32(1.0)})
    np.testing.assert_allclose(out, guided()[0], rtol=1e-4, atol=1e-4)


def test_guiding_clean_latents_is_guiding_velocities():
    """The published rule combines velocities; both predictions share z and t."""
    out, _ = guided(c=C)
    u, g = (flow.velocity(network(*x, T), Z, T) for x in (CLEARED, (Z, SELF)))
    expected = ops.convert_to_numpy(u + C * (g - u))
    free = ~IS_COND
    velocity = ops.convert_to_numpy(flow.velocity(out, Z, T))
    np.testing.assert_allclose(velocity[free], expected[free], rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(velocity[IS_COND], 0)
