"""Draws of time and guidance scale: recorded numbers and properties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_elf import flow
from tests.flow.numbers_between import between

STEPS = 7


def array(x):
    return ops.convert_to_numpy(x)


def test_logit_normal_equals_public_code(reference):
    ref = reference("jax/schedules")
    t = flow.logit_normal(ref["normal"], float(ref["p_mean"]), float(ref["p_std"]))
    np.testing.assert_allclose(array(t), ref["logit_normal_t"], rtol=0, atol=2e-5)
    # The recorded mean and deviation are the defaults.
    np.testing.assert_array_equal(array(flow.logit_normal(ref["normal"])), array(t))


def test_guidance_scale_equals_public_code(reference):
    ref = reference("jax/schedules")
    scale = flow.guidance_scale(ref["uniform"], float(ref["cfg_min"]), float(ref["cfg_max"]))
    np.testing.assert_allclose(array(scale), ref["cfg_scale"], rtol=0, atol=2e-5)
    np.testing.assert_array_equal(array(flow.guidance_scale(ref["uniform"])), array(scale))


@settings(max_examples=20, deadline=None)
@given(between(0.0, 1.0), between(0.0, 2.0), between(0.1, 8.0))
def test_guidance_scale_stays_in_its_range(uniform, minimum, span):
    maximum = minimum + span
    scale, later = (
        float(array(flow.guidance_scale(np.float32(u), minimum, maximum)))
        for u in (uniform, min(uniform + 0.1, 1.0))
    )
    slack = 1e-5 * (1 + maximum)
    assert minimum - slack <= scale <= maximum + slack
    assert later >= scale - slack


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), between(-3.0, 3.0), between(0.0, 2.0))
def test_logit_normal_grid_increases_between_its_ends(seed, mean, std):
    normal = np.random.default_rng(seed).standard_normal(STEPS - 1).astype("float32")
    grid = array(flow.time_grid(STEPS, normal, mean=mean, std=std))
    assert grid.shape == (STEPS + 1,) and grid.dtype == np.float32
    assert grid[0] == 0 and grid[-1] == 1
    assert (np.diff(grid) >= 0).all()
    assert 0 < grid[1] and grid[-2] < 1
    inner = np.sort(array(flow.logit_normal(normal, mean, std)))
    np.testing.assert_allclose(grid[1:-1], inner, atol=1e-6)


@pytest.mark.parametrize("num_steps", [1, 2, 5])
def test_uniform_grid(num_steps):
    grid = array(flow.time_grid(num_steps, schedule="uniform"))
    np.testing.assert_allclose(grid, np.arange(num_steps + 1) / num_steps, atol=1e-6)


def test_one_step_needs_no_inner_time():
    np.testing.assert_array_equal(array(flow.time_grid(1, np.zeros(0, "float32"))), [0.0, 1.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_steps": 0, "normal": None}, "`num_steps`.*0"),
        ({"num_steps": 2.0, "normal": None}, "`num_steps`.*2.0"),
        ({"num_steps": 4, "normal": None}, "3 standard normals.*None"),
        ({"num_steps": 4, "normal": np.zeros(4, "float32")}, r"3 standard normals.*\(4,\)"),
        ({"num_steps": 4, "schedule": "unifrom"}, "Did you mean 'uniform'"),
    ],
)
def test_bad_grids_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        flow.time_grid(**arguments)
