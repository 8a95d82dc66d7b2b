"""Runs too short for their settings: said, and never shown as a trained model."""

import warnings

import keras
import numpy as np
import pytest

from keras_elf.callbacks import ResumableCheckpoint
from keras_elf.objectives import ELFObjective
from keras_elf.optimizers import AdamW, Muon
from keras_elf.training import averages
from tests.models import small

pytestmark = pytest.mark.filterwarnings("ignore:.*were too long and were cut.*")
DECAY, BATCHES = 0.95, 4  # Half of the averages is trained after 13.5 steps.


def generator(optimizer=None):
    objective = ELFObjective(self_conditioning_probability=0)  # quick to compile
    model = small.generator("gaussian", preprocessor=None, objective=objective)
    model.compile(optimizer=optimizer or AdamW(0.05, ema_momentum=DECAY))
    return model


def rows():
    return small.rows(BATCHES * small.BATCH)


def fit(model, epochs=1, x=None, **options):
    options.setdefault("batch_size", small.BATCH)
    return model.fit(rows() if x is None else x, epochs=epochs, verbose=0, **options)


@pytest.fixture(scope="module")
def short():
    model = generator()
    fit(model, 2)
    return model


def test_share_of_the_averages_that_training_made(short):
    np.testing.assert_allclose(averages.trained_share(short), 1 - DECAY**8, rtol=1e-5)
    assert averages.trained_share(generator()) == 0.0
    assert averages.trained_share(generator(keras.optimizers.SGD(0.1))) == 0.0


def test_averages_that_have_hardly_moved_are_not_used(short, tmp_path):
    raw = short.get_weights(use_averages=False)
    with averages.told_after(short):
        pass
    with pytest.warns(UserWarning, match=r"ema_momentum=0.95` only 34 %.*compile with a lower"):
        assert small.all_equal(short.get_weights(), raw)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # It is said once.
        assert small.all_equal(short.get_weights(), raw)
        with averages.averaged_weights(short):
            assert small.all_equal(small.values(short.weights), raw)
    always = short.get_weights(use_averages="always")
    assert small.error_between(always, raw) > 1e-3
    with averages.averaged_weights(short, "always"):
        assert small.all_equal(small.values(short.weights), always)

    settings = dict(num_samples=2, seed=0, verbose=False)
    texts = {use: short.generate(**settings, use_averages=use) for use in (True, False)}
    assert np.array_equal(texts[True], texts[False])
    evaluated = {
        use: short.evaluate(rows(), batch_size=small.BATCH, verbose=0, use_averages=use)
        for use in (True, False, "always")
    }
    assert evaluated[True] == evaluated[False] != evaluated["always"]
    short.save_to_preset(tmp_path / "preset")
    loaded = type(short).from_preset(str(tmp_path / "preset"), preprocessor=None)
    assert small.all_equal(loaded.get_weights(), raw)
    with pytest.raises(ValueError, match="`use_averages` must be one of"):
        short.generate(**settings, use_averages="sometimes")


def test_they_are_used_once_half_of_them_is_trained():
    model, seen = generator(), []

    class Watch(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            used = self.model.get_weights()
            raw, average = (self.model.get_weights(use_averages=u) for u in (False, "always"))
            assert small.error_between(raw, average) > 1e-4
            seen.append(small.all_equal(used, average))
            assert seen[-1] or small.all_equal(used, raw)

    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # Nothing is finished yet.
        warnings.filterwarnings("ignore", message=".*were too long and were cut.*")
        warnings.filterwarnings("ignore", message="This run of .* is too short")
        fit(model, 4, callbacks=[Watch()])
    assert seen == [False] * 13 + [True] * 3


def test_steps_count_over_a_second_compile_and_from_new_weights():
    model = generator()
    fit(model)
    model.compile(optimizer=Muon(1e-3, ema_momentum=0.5))
    fit(model)
    np.testing.assert_allclose(averages.trained_share(model), 1 - DECAY**4 * 0.5**4, rtol=1e-5)
    model.set_weights(model.get_weights())
    assert averages.trained_share(model) == 0.0


def test_a_resumed_run_keeps_the_count(tmp_path):
    model = generator()
    fit(model, 2, callbacks=[ResumableCheckpoint(tmp_path / "run")])
    again = generator()
    fit(again, 3, callbacks=[ResumableCheckpoint(tmp_path / "run", resume=True)])
    np.testing.assert_allclose(averages.trained_share(again), 1 - DECAY**12, rtol=1e-5)


def test_files_of_earlier_versions_have_their_steps_counted(short):
    state = {str(n): value for n, value in enumerate(small.values(short.optimizer.variables))}
    assert short.optimizer.variables[-1] is short.optimizer.share_of_start
    del state[str(len(state) - 1)]
    other = AdamW(0.05, ema_momentum=DECAY)
    other.build(generator().trainable_variables)
    other.load_own_variables(state)
    found = float(keras.ops.convert_to_numpy(other.share_of_start))
    np.testing.assert_allclose(found, DECAY**8, rtol=1e-5)


@pytest.mark.parametrize("optimizer", [AdamW, keras.optimizers.SGD])
def test_accumulation_longer_than_the_run_is_told_before_it(optimizer):
    model = generator(optimizer(0.05, gradient_accumulation_steps=10))
    before, started = model.get_weights(), []
    start = keras.callbacks.LambdaCallback(on_train_begin=lambda logs: started.append(1))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fit(model, 2, callbacks=[start])
    told = [str(w.message) for w in told if "gradient_accumulation_steps" in str(w.message)]
    assert len(told) == 1 and "will train nothing" in told[0]
    assert "gradient_accumulation_steps=10" in told[0] and "this run has 8." in told[0]
    assert small.all_equal(model.get_weights(), before)
    # The eight batches wait for two more.
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*gradient_accumulation_steps.*")
        fit(model)
    assert not small.all_equal(model.get_weights(), before)


def test_accumulation_over_data_of_unknown_length_is_told_after_it():
    model = generator(AdamW(0.05, gradient_accumulation_steps=10))

    def batches():
        for _ in range(3):
            yield ({name: array[: small.BATCH] for name, array in rows().items()},)

    with pytest.warns(UserWarning, match="`fit` trained nothing.*this run has 3"):
        fit(model, x=batches(), batch_size=None)
