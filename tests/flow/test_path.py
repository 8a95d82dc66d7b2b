"""The path, its velocity and their inverses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_elf import flow
from tests.flow.numbers_between import between

SHAPE = (2, 3, 4)
seeds = st.integers(0, 2**31)
property_test = settings(max_examples=20, deadline=None)


def draw(seed, *names):
    values = np.random.default_rng(seed).standard_normal((len(names), *SHAPE))
    return values.astype("float32")


def array(x):
    return ops.convert_to_numpy(x)


@property_test
@given(seeds, between(0.0, 0.95))
def test_velocity_carries_the_path_to_its_clean_end(seed, t):
    clean, noise = draw(seed, "clean", "noise")
    z = flow.interpolate(clean, noise, np.float32(t))
    v = flow.velocity(clean, z, np.float32(t))
    np.testing.assert_allclose(array(z + (1 - t) * v), clean, rtol=1e-4, atol=1e-4)


@property_test
@given(seeds, between(0.0, 1.0))
def test_clean_from_velocity_inverts_velocity(seed, t):
    clean, z = draw(seed, "clean", "z")
    v = flow.velocity(clean, z, np.float32(t))
    back = flow.clean_from_velocity(v, z, np.float32(t))
    np.testing.assert_allclose(array(back), clean, rtol=1e-4, atol=1e-4)


@property_test
@given(seeds, between(0.051, 1.0), between(0.5, 5.0))
def test_clean_from_noise_inverts_the_path(seed, t, scale):
    clean, noise = draw(seed, "clean", "noise")
    z = flow.interpolate(clean, noise, np.float32(t), noise_scale=scale)
    back = flow.clean_from_noise(noise, z, np.float32(t), noise_scale=scale)
    np.testing.assert_allclose(array(back), clean, rtol=1e-3, atol=1e-3)


def test_ends_of_the_path():
    clean, noise = draw(0, "clean", "noise")
    np.testing.assert_allclose(array(flow.interpolate(clean, noise, 0.0)), 2.0 * noise)
    np.testing.assert_allclose(array(flow.interpolate(clean, noise, 1.0)), clean)
    np.testing.assert_allclose(
        array(flow.interpolate(clean, noise, 0.0, noise_scale=5.0)), 5 * noise
    )


def test_velocity_is_finite_at_the_clean_end():
    clean, z = draw(0, "clean", "z")
    expected = (clean - z) / flow.MIN_TIME_GAP
    for t in (1.0, 0.99):
        np.testing.assert_allclose(array(flow.velocity(clean, z, t)), expected, rtol=1e-5)
    np.testing.assert_allclose(
        array(flow.velocity(clean, z, 1.0, min_time_gap=0.1)), expected / 2, rtol=1e-5
    )


@pytest.mark.parametrize("shape", [(2,), (2, 3)])
def test_time_of_a_row_or_of_a_token(shape):
    """Each row, or token, moves by its own time."""
    clean, noise = draw(0, "clean", "noise")
    t = np.linspace(0.1, 0.9, int(np.prod(shape)), dtype="float32").reshape(shape)
    full = np.broadcast_to(t.reshape(shape + (1,) * (3 - len(shape))), SHAPE)
    z = array(flow.interpolate(clean, noise, t))
    np.testing.assert_allclose(z, full * clean + (1 - full) * 2 * noise, rtol=1e-5, atol=1e-6)
    v = array(flow.velocity(clean, z, t))
    expected = (clean - z) / np.maximum(1 - full, 0.05)
    np.testing.assert_allclose(v, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("function", [flow.interpolate, flow.velocity, flow.clean_from_velocity])
def test_arithmetic_is_float32_for_any_input(function):
    """bfloat16 arithmetic would be off by a hundred times this tolerance."""
    a, b = draw(0, "a", "b")
    low = ops.cast(a, "bfloat16"), ops.cast(b, "bfloat16")
    high = ops.cast(low[0], "float32"), ops.cast(low[1], "float32")
    t = np.float32([0.3, 0.97])
    out = function(*low, t)
    assert "float32" in str(out.dtype)
    np.testing.assert_allclose(array(out), array(function(*high, t)), rtol=1e-6)
