"""Condition positions are put in, taken out, and nothing else is touched."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays
from keras import ops

from keras_elf import flow

Z, CONDITION = np.random.default_rng(0).standard_normal((2, 2, 3, 4)).astype("float32")
masks = arrays(bool, (2, 3))


def array(x):
    return ops.convert_to_numpy(x)


@settings(max_examples=15, deadline=None)
@given(masks)
def test_pin_and_clear_touch_condition_positions_only(is_cond):
    expected = np.where(is_cond[..., None], CONDITION, Z)
    pinned = flow.pin(Z, CONDITION, is_cond)
    np.testing.assert_array_equal(array(pinned), expected)
    np.testing.assert_array_equal(array(flow.pin(pinned, CONDITION, is_cond)), expected)
    expected = np.where(is_cond[..., None], 0, Z)
    np.testing.assert_array_equal(array(flow.clear(pinned, is_cond)), expected)
    np.testing.assert_array_equal(array(flow.clear(Z, is_cond)), expected)


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32"])
def test_masks_of_any_kind_are_equal(dtype):
    is_cond = np.array([[1, 0, 0], [1, 1, 0]])
    expected = array(flow.pin(Z, CONDITION, is_cond > 0))
    np.testing.assert_array_equal(array(flow.pin(Z, CONDITION, is_cond.astype(dtype))), expected)


def test_nothing_at_condition_positions_is_read_elsewhere():
    """NaN in the unused half of either tensor does not leak through the choice."""
    is_cond = np.array([[1, 0, 0], [1, 1, 0]]) > 0
    z = np.where(is_cond[..., None], np.nan, Z).astype("float32")
    condition = np.where(is_cond[..., None], CONDITION, np.nan).astype("float32")
    assert np.isfinite(array(flow.pin(z, condition, is_cond))).all()
    assert np.isfinite(array(flow.clear(z, is_cond))).all()


def test_no_condition_means_no_change():
    assert flow.pin(Z, None, None) is Z
    assert flow.clear(Z, None) is Z
