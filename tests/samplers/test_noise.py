"""Each sample has its own noise, whatever batch it is drawn in."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_elf.samplers import SampleNoise

pytestmark = pytest.mark.backend_free

SHAPE = (3, 4)
steps = st.integers(0, 1000)
sample_numbers = st.lists(st.integers(0, 10**6), min_size=1, max_size=5, unique=True)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**63 - 1), steps, sample_numbers)
def test_noise_of_a_sample_does_not_depend_on_its_batch(seed, step, samples):
    noise = SampleNoise(seed)
    batch = noise.step(step, samples, SHAPE)
    assert batch.shape == (len(samples), *SHAPE) and batch.dtype == np.float32
    for row, sample in enumerate(samples):
        # A new object, and another order of calls: nothing is remembered between them.
        alone = SampleNoise(seed).step(step, [sample], SHAPE)
        np.testing.assert_array_equal(batch[row], alone[0])
    shuffled = noise.step(step, samples[::-1], SHAPE)
    np.testing.assert_array_equal(shuffled, batch[::-1])
    first = noise.initial(samples, SHAPE)
    np.testing.assert_array_equal(first[-1:], SampleNoise(seed).initial(samples[-1:], SHAPE))


def test_a_range_of_samples_is_cut_at_will():
    noise = SampleNoise(3)
    whole = noise.step(0, range(6), SHAPE)
    parts = [noise.step(0, part, SHAPE) for part in (range(0, 1), range(1, 4), range(4, 6))]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_all_streams_differ_pairwise():
    """Seeds, samples, steps, the first noise and the grid share no noise."""
    draws = []
    for seed in (0, 1, 2**63 - 1):
        noise = SampleNoise(seed)
        draws.append(noise.grid(13))
        draws += list(noise.initial(range(3), (12,)))
        for step in range(4):
            draws += list(noise.step(step, range(3), (12,)))
    draws = np.array(draws)
    similarity = np.abs(np.corrcoef(draws)) - np.eye(len(draws))
    assert similarity.max() < 0.95
    # Nor is one stream a later part of another.
    assert len(np.unique(draws)) == draws.size


def test_grid_belongs_to_the_run_not_to_a_sample():
    assert SampleNoise(0).grid(8).shape == (7,)
    np.testing.assert_array_equal(SampleNoise(5).grid(8), SampleNoise(5).grid(8))
    assert np.abs(SampleNoise(5).grid(8) - SampleNoise(6).grid(8)).max() > 0.1
    # Another number of steps is another grid, not the same one continued.
    assert np.abs(SampleNoise(5).grid(9)[:7] - SampleNoise(5).grid(8)).max() > 0.1
    assert SampleNoise(0).grid(1).shape == (0,)


def test_no_seed_means_another_run_each_time():
    first, second = SampleNoise(), SampleNoise()
    assert first.seed != second.seed
    assert np.abs(first.initial([0], SHAPE) - second.initial([0], SHAPE)).max() > 0.1
    # The drawn seed repeats the run.
    again = SampleNoise(first.seed)
    np.testing.assert_array_equal(again.initial([0], SHAPE), first.initial([0], SHAPE))


def test_draws_are_standard_normal():
    values = SampleNoise(1).step(2, range(100), (1000,)).astype("float64")
    assert abs(values.mean()) < 0.015 and abs(values.std() - 1) < 0.01
    assert abs((values**3).mean()) < 0.04 and abs((values**4).mean() - 3) < 0.1
    # Neither along a sample nor between samples.
    assert abs((values[:, 1:] * values[:, :-1]).mean()) < 0.015
    assert abs((values[1:] * values[:-1]).mean()) < 0.015


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, "7", True, [0]])
def test_bad_seeds_are_refused(seed):
    with pytest.raises(ValueError, match="`seed`"):
        SampleNoise(seed)


def test_numpy_integers_are_seeds():
    draws = (SampleNoise(seed).initial([0], SHAPE) for seed in (7, np.int64(7)))
    np.testing.assert_array_equal(*draws)


def test_threads_draw_the_same(monkeypatch):
    expected = SampleNoise(3).step(2, range(5, 12), (4, 3))
    monkeypatch.setattr(sys.modules[SampleNoise.__module__], "_WORTH_THREADS", 1)
    np.testing.assert_array_equal(SampleNoise(3).step(2, range(5, 12), (4, 3)), expected)
