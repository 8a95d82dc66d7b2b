import sys

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_elf.optimizers import newton_schulz
from keras_elf.optimizers.newton_schulz import _iterate, group_by_shape, newton_schulz_grouped


def singular_value_map(matrix, steps):
    """The same iteration on the singular values alone, in double precision."""
    u, s, vt = np.linalg.svd(np.float64(matrix), full_matrices=False)
    s = s / (np.sqrt((s**2).sum()) + 1e-8)
    for _ in range(steps):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    return (u * s) @ vt


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 7), st.integers(1, 7), st.integers(0, 5), st.integers(0, 2**16))
def test_acts_on_singular_values(rows, columns, steps, seed):
    matrix = np.float32(np.random.default_rng(seed).standard_normal((rows, columns)))
    got = keras.ops.convert_to_numpy(newton_schulz(matrix, steps))
    np.testing.assert_allclose(got, singular_value_map(matrix, steps), atol=2e-4)


def test_singular_values_come_near_one():
    rng = np.random.default_rng(0)
    u, v = (np.linalg.qr(rng.standard_normal((12, 12)))[0] for _ in range(2))
    matrix = np.float32((u * np.geomspace(0.003, 1.0, 12)) @ v)
    matrix /= np.sqrt((matrix**2).sum())
    got = np.linalg.svd(keras.ops.convert_to_numpy(newton_schulz(matrix)), compute_uv=False)
    assert got.min() > 0.6 and got.max() < 1.21


def test_float32_inside_whatever_comes_in():
    matrix = keras.ops.cast(np.float32(np.random.default_rng(0).standard_normal((4, 6))), "float16")
    got = newton_schulz(matrix)
    assert keras.backend.standardize_dtype(got.dtype) == "float32"
    want = singular_value_map(keras.ops.convert_to_numpy(matrix), 5)
    np.testing.assert_allclose(keras.ops.convert_to_numpy(got), want, atol=1e-4)


def test_zero_stays_zero():
    assert not keras.ops.convert_to_numpy(newton_schulz(np.zeros((3, 5), "float32"))).any()


@pytest.mark.parametrize("accelerator", [True, False])
def test_grouped_equals_one_by_one(monkeypatch, accelerator):
    module = sys.modules["keras_elf.optimizers.newton_schulz"]
    monkeypatch.setattr(module, "has_accelerator", lambda: accelerator)
    # On a CPU each of these is then a large one, and alone.
    monkeypatch.setattr(module, "MAX_GROUP_ELEMENTS_ON_CPU", 20)
    rng = np.random.default_rng(1)
    shapes = [(3, 5), (4, 4), (5, 3), (3, 5), (2, 9), (4, 4)]
    matrices = [np.float32(rng.standard_normal(shape)) for shape in shapes]
    tensors = [keras.ops.convert_to_tensor(m) for m in matrices]
    grouped = [keras.ops.convert_to_numpy(x) for x in newton_schulz_grouped(tensors)]
    for got, matrix in zip(grouped, matrices, strict=True):
        assert got.shape == matrix.shape
        np.testing.assert_allclose(got, singular_value_map(matrix, 5), atol=1e-4)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), max_size=12), st.integers(1, 40))
def test_groups_cover_once_and_stay_small(shapes, limit):
    groups = group_by_shape(shapes, limit)
    assert sorted(i for _, indices in groups for i in indices) == list(range(len(shapes)))
    for (small, large), indices in groups:
        assert small <= large
        assert all(tuple(sorted(shapes[i])) == (small, large) for i in indices)
        assert len(indices) == 1 or len(indices) * small * large <= limit


SPECTRA = {
    "alike": np.ones(48),
    "falling": np.logspace(0, -3, 48),
    "falling below what float32 resolves": np.logspace(0, -7, 48),
    "few": np.r_[np.ones(6), np.zeros(42)],
    "few and noise": np.r_[np.ones(6), np.full(42, 1e-4)],
}


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("steps", [5, 9])
def test_wide_matrices_lose_no_precision_in_their_gram_matrix(name, steps):
    rng = np.random.default_rng(3)
    u = np.linalg.qr(rng.standard_normal((48, 48)))[0]
    v = np.linalg.qr(rng.standard_normal((160, 48)))[0].T
    matrix = np.float32((u * SPECTRA[name]) @ v)
    x = matrix / np.float32(np.linalg.norm(matrix) + 1e-8)
    exact = np.float64(x)
    for _ in range(steps):
        gram = exact @ exact.T
        exact = 3.4445 * exact + (-4.7750 * gram + 2.0315 * gram @ gram) @ exact
    plain = keras.ops.convert_to_numpy(_iterate(keras.ops.convert_to_tensor(x), steps))
    got = keras.ops.convert_to_numpy(newton_schulz(matrix, steps))
    # More steps than five blow up rounding in whatever way they are computed.
    allowed = max(1e-4 * np.abs(exact).max(), 2 * np.abs(plain - exact).max())
    assert np.abs(got - exact).max() < allowed


@pytest.mark.parametrize("shape", [(256, 256), (257, 600), (700, 301)])
def test_large_matrices_whose_symmetric_products_are_halved(shape):
    matrix = np.float32(np.random.default_rng(5).standard_normal(shape))
    want = singular_value_map(matrix, 5)
    got = keras.ops.convert_to_numpy(newton_schulz(matrix))
    assert np.abs(got - want).max() < 2e-5 * np.abs(want).max()


def test_bad_arguments():
    with pytest.raises(ValueError, match="at least two axes"):
        newton_schulz(np.ones(3, "float32"))
    with pytest.raises(ValueError, match="`steps`"):
        newton_schulz(np.ones((3, 3), "float32"), steps=-1)
