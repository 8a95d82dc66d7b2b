"""`fit` gives a run the settings of its length, or says that it is too short for its own."""

import warnings

import keras
import numpy as np
import pytest

from keras_elf import testing
from keras_elf.data import TokenBatches
from keras_elf.objectives import ELFObjective
from keras_elf.optimizers import Muon, WarmupSchedule
from keras_elf.training import TrainingRecipe, batch_size_of, batches_in_run


def rows(num=32, length=16):
    return {"token_ids": np.random.default_rng(0).integers(3, 64, (num, length)).astype("int32")}


def model():
    return testing.dummy_generator(preprocessor=None)


def values(variables):
    return [keras.ops.convert_to_numpy(variable).copy() for variable in variables]


def current_averages(elf):
    return values([average for _, average in elf.optimizer.average_pairs()])


def schedule(elf):
    return elf.optimizer.get_config()["learning_rate"]["config"]


def test_compile_without_arguments_fits_the_run():
    elf = model()
    elf.compile()
    before = values(elf.trainable_variables)
    elf.fit(rows(), batch_size=8, epochs=3, verbose=0)
    expected = TrainingRecipe.for_run(12, 8)
    assert schedule(elf) == expected.schedule().get_config()
    assert elf.optimizer.ema_momentum == expected.ema_momentum
    # The averages have followed: they are near the weights and far from where both began.
    near = far = 0.0
    for (variable, average), start in zip(elf.optimizer.average_pairs(), before, strict=True):
        variable, average = values([variable, average])
        near += np.abs(average - variable).sum()
        far += np.abs(start - variable).sum()
    assert near < 0.2 * far


def test_the_compiled_step_uses_the_rates_of_its_own_run():
    """A step compiled for the first run would train the second one at rate 0."""
    elf = model()
    elf.compile()
    elf.fit(rows(), batch_size=8, epochs=2, verbose=0)
    assert schedule(elf)["total_steps"] == 8
    weights, averages = values(elf.trainable_variables), current_averages(elf)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings(
            "ignore", message="Only .* of the tokens come back|The latents have"
        )
        elf.fit(rows(), batch_size=8, epochs=5, verbose=0)
    assert schedule(elf)["total_steps"] == 20 and schedule(elf)["first_step"] == 8
    assert int(keras.ops.convert_to_numpy(elf.optimizer.iterations)) == 28
    pairs = zip(values(elf.trainable_variables), weights, strict=True)
    # Twenty steps at a rate near 1e-2; at the end of the first run's decay it would be zero.
    assert max(np.abs(new - old).max() for new, old in pairs) > 0.05
    pairs = zip(current_averages(elf), averages, strict=True)
    assert max(np.abs(new - old).max() for new, old in pairs) > 0.05


def test_epochs_already_done_do_not_count():
    elf = model()
    elf.compile()
    elf.fit(rows(), batch_size=8, epochs=5, initial_epoch=3, verbose=0)
    assert schedule(elf)["total_steps"] == 8


@pytest.mark.backend_free
def test_data_that_does_not_tell_its_length_is_warned_of():
    def batches():
        while True:
            yield ({"token_ids": rows(8)["token_ids"]},)

    elf = model()
    elf.compile()
    elf.fit(batches(), steps_per_epoch=2, epochs=2, verbose=0)
    assert schedule(elf)["total_steps"] == 4

    def two():
        for _ in range(2):
            yield ({"token_ids": rows(8)["token_ids"]},)

    with pytest.warns(UserWarning, match="steps_per_epoch"):
        elf.fit(two(), epochs=1, verbose=0)
    assert (schedule(elf)["warmup_steps"], schedule(elf)["peak"]) == (5000, 2e-3)


@pytest.mark.backend_free
def test_settings_by_hand_stay_and_are_warned_of_where_too_long():
    elf = model()
    given = WarmupSchedule(2e-3, 5000)
    elf.compile(optimizer=Muon(given))
    with pytest.warns(UserWarning, match="too short for its settings.*warming up"):
        elf.fit(rows(), batch_size=16, verbose=0)
    assert schedule(elf) == given.get_config()
    elf.compile(optimizer="published")
    with pytest.warns(UserWarning, match="averaged weights"):
        elf.fit(rows(), batch_size=16, verbose=0)
    elf.compile(optimizer=TrainingRecipe.for_run(2, 16))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings(
            "ignore", message="Only .* of the tokens come back|The latents have"
        )
        elf.fit(rows(), batch_size=16, verbose=0)


@pytest.mark.backend_free
def test_a_saved_model_still_chooses_by_itself(tmp_path):
    elf = model()
    elf.compile()
    elf.fit(rows(), batch_size=8, verbose=0)
    elf.save(tmp_path / "elf.keras")
    loaded = keras.models.load_model(tmp_path / "elf.keras")
    assert int(keras.ops.convert_to_numpy(loaded.optimizer.iterations)) == 4
    loaded.fit(rows(), batch_size=8, epochs=2, verbose=0)
    assert (schedule(loaded)["first_step"], schedule(loaded)["total_steps"]) == (4, 8)


@pytest.mark.backend_free
def test_a_recipe_brings_its_objective():
    elf = model()
    objective = ELFObjective(decode_probability=0.5)
    elf.compile(optimizer=TrainingRecipe.for_run(4, 8, objective=objective))
    assert elf.objective is objective
    elf.compile(optimizer=TrainingRecipe.for_run(4, 8))
    assert elf.objective is objective


@pytest.mark.backend_free
def test_lengths_and_sizes_of_datasets():
    batches = TokenBatches(rows(20), batch_size=8)
    assert batches_in_run(batches, epochs=3) == 6
    assert batches_in_run(batches, epochs=3, initial_epoch=2, steps_per_epoch=5) == 5
    assert batches_in_run(iter([])) is None
    assert (batch_size_of(batches), batch_size_of(iter([]))) == (8, None)
