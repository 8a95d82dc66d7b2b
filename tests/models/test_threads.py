"""Several threads and several models at once: nobody sees what is another's."""

import concurrent.futures
import threading

import numpy as np
import pytest

from tests.models import small

SEEDS = range(4)


def fitted(**overrides):
    """A model whose averages differ from its weights, so that a mixture would show."""
    model = small.enliven(small.generator("gaussian", preprocessor=None, **overrides))
    model.compile(optimizer=small.muon(0.03))
    model.fit(IDS, batch_size=6, epochs=4, verbose=0)
    return model


IDS = np.random.default_rng(0).integers(3, small.VOCABULARY_SIZE, (12, small.LENGTH))


def write(model, seed, **kwargs):
    return model.generate(num_samples=2, seed=seed, verbose=False, **kwargs)


@pytest.fixture(scope="module")
def model():
    return fitted()


@pytest.fixture(scope="module")
def alone(model):
    """What each seed gives when nothing else runs, once nothing is left to compile."""
    found = [write(model, seed) for seed in SEEDS]
    raw = [write(model, seed, use_averages=False) for seed in SEEDS]
    assert all((a != b).any() for a, b in zip(found, raw, strict=True))
    return found


def together(*calls):
    """Results of calls that run at the same time, from the very start of all of them."""
    start = threading.Barrier(len(calls))

    def run(call):
        start.wait()
        return call()

    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def test_a_model_that_was_just_fitted_writes_in_four_threads(alone):
    fresh = fitted()  # Nothing is compiled yet.
    for _ in range(3):
        found = together(*[lambda seed=seed: write(fresh, seed) for seed in SEEDS])
        for seed, (one, other) in enumerate(zip(found, alone, strict=True)):
            np.testing.assert_array_equal(one, other, err_msg=f"seed {seed}")


def test_an_evaluation_does_not_show_in_what_is_written(model, alone):
    want = model.evaluate(IDS, batch_size=4, verbose=0)
    weights = small.current_values(model)

    def evaluate():
        return [model.evaluate(IDS, batch_size=4, verbose=0) for _ in range(4)]

    def writing(seed):
        return lambda: [write(model, seed) for _ in range(4)]

    evaluated, *written = together(evaluate, *map(writing, SEEDS[:2]))
    for losses in evaluated:
        np.testing.assert_allclose(losses, want, rtol=1e-6)
    for seed, texts in enumerate(written):
        for text in texts:
            np.testing.assert_array_equal(text, alone[seed], err_msg=f"seed {seed}")
    assert small.all_equal(small.current_values(model), weights)


def test_raw_weights_are_raw_while_another_thread_evaluates(model):
    want = write(model, 0, use_averages=False)
    found, _ = together(
        lambda: [write(model, 0, use_averages=False) for _ in range(4)],
        lambda: [model.evaluate(IDS, batch_size=4, verbose=0) for _ in range(4)],
    )
    for text in found:
        np.testing.assert_array_equal(text, want)


def test_two_models_do_not_mix(model, alone):
    other = fitted(network={"depth": 2}, sampler="ode")
    want = write(other, 0)
    assert (want != alone[0]).any()
    for one, second in [
        together(lambda: write(model, 0), lambda: write(other, 0)) for _ in range(3)
    ]:
        np.testing.assert_array_equal(one, alone[0])
        np.testing.assert_array_equal(second, want)
