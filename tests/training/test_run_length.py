"""Settings grow with the run, from those of a short one to the published ones."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_elf.objectives import ELFObjective
from keras_elf.optimizers import Muon, WarmupSchedule
from keras_elf.training import TrainingRecipe, default_batch_size, too_short

pytestmark = pytest.mark.backend_free


def rates(schedule, steps):
    return np.array([float(schedule(step)) for step in steps])


@pytest.mark.parametrize("steps", [100_000, 300_000])
def test_long_runs_have_the_published_settings(steps):
    recipe = TrainingRecipe.for_run(steps, batch_size=512)
    assert (recipe.warmup_steps, recipe.ema_momentum) == (5000, 0.9999)
    assert recipe.learning_rate == pytest.approx(2e-3, rel=5e-3)
    assert recipe.final_learning_rate == pytest.approx(2e-3, rel=5e-3)
    half = TrainingRecipe.for_run(steps, batch_size=256)
    assert half.learning_rate == pytest.approx(1e-3, rel=7e-3)


@pytest.mark.parametrize("batch_size", [32, 128, 512])
def test_short_runs_warm_up_decay_and_average_within_themselves(batch_size):
    recipe = TrainingRecipe.for_run(200, batch_size)
    rate = rates(recipe.optimizer()._learning_rate, range(200))
    assert rate.max() == pytest.approx(1e-2, rel=0.02)
    assert rate[10] == rate[59] == rate.max() > rate[61]
    assert rate[0] == 0 and rate[-1] < 2e-4
    assert recipe.ema_momentum**200 < 1e-4


def test_everything_changes_smoothly_with_the_length():
    recipes = [TrainingRecipe.for_run(int(n), 512) for n in np.geomspace(20, 200_000, 200)]
    for name in ("learning_rate", "warmup_steps", "ema_momentum", "final_learning_rate"):
        values = np.array([getattr(recipe, name) for recipe in recipes])
        if name in ("learning_rate", "ema_momentum", "warmup_steps"):
            steps = np.diff(values) * (-1 if name == "learning_rate" else 1)
            assert (steps >= 0).all(), name
        assert np.abs(np.diff(values)).max() < 0.12 * np.ptp(values) + 1e-9, name


@pytest.mark.parametrize("steps", [1, 2, 3, 10])
def test_the_shortest_runs_have_a_recipe(steps):
    recipe = TrainingRecipe.for_run(steps, 8)
    assert recipe.schedule()(0) > 0
    recipe.optimizer()


def test_overrides_win():
    recipe = TrainingRecipe.for_run(100, 64, warmup_epochs=0.5, num_rows=640, ema_momentum=0.5)
    assert (recipe.warmup_steps, recipe.warmup_epochs, recipe.ema_momentum) == (None, 0.5, 0.5)
    assert recipe.schedule().warmup_steps == 5
    with pytest.raises(TypeError, match="unknown arguments"):
        TrainingRecipe.for_run(100, 64, warm_up=3)
    with pytest.raises(ValueError, match="`total_steps`"):
        TrainingRecipe.for_run(0, 64)
    with pytest.raises(ValueError, match="`num_rows`"):
        TrainingRecipe(warmup_epochs=1.0)
    with pytest.raises(ValueError, match="`objective`"):
        TrainingRecipe(warmup_steps=1, objective="mse")
    assert TrainingRecipe(warmup_steps=1, objective=ELFObjective()).objective is not None


def test_a_later_run_counts_from_its_own_first_step():
    recipe = TrainingRecipe.for_run(50, 32)
    first, later = recipe.schedule(), recipe.schedule(first_step=1000)
    steps = np.arange(50)
    np.testing.assert_allclose(rates(later, 1000 + steps), rates(first, steps), rtol=1e-6)
    again = WarmupSchedule.from_config(later.get_config())
    assert float(again(1025)) == float(later(1025))


@pytest.mark.parametrize(
    ("rows", "size"), [(1, 1), (20, 20), (300, 32), (3000, 32), (10_000, 64), (10**7, 128)]
)
def test_default_batches(rows, size):
    assert default_batch_size(rows) == size


def built(**kwargs):
    optimizer = Muon(**kwargs)
    optimizer.build([keras.Variable(np.zeros((2, 2), "float32"))])
    return optimizer


@pytest.mark.parametrize(
    ("settings", "steps", "words"),
    [
        ({"learning_rate": WarmupSchedule(2e-3, 5000)}, 184, ["3.7%", "98%"]),
        ({"learning_rate": 2e-3}, 184, ["98%", "ema_momentum=0.9999"]),
        ({"learning_rate": 1e-2, "ema_momentum": 0.99}, 184, ["16%"]),
        ({"learning_rate": WarmupSchedule(1e-2, 300), "use_ema": False}, 184, ["step 184 of 300"]),
    ],
)
def test_settings_that_a_run_is_too_short_for_are_named(settings, steps, words):
    message = too_short(built(**settings), steps)
    assert all(word in message for word in words), message


def test_settings_that_suit_are_not_spoken_of():
    assert too_short(TrainingRecipe.for_run(184, 64).optimizer(), 184) is None
    published = TrainingRecipe.published("elf_b_owt").optimizer()
    assert too_short(published, 95_000) is None
    published.iterations.assign(95_000)
    assert too_short(published, 10) is None
    assert too_short(keras.optimizers.Adam(), 10) is None


def test_applied_settings_keep_the_state():
    optimizer = TrainingRecipe.for_run(40, 32).optimizer()
    variable = keras.Variable(np.ones((4, 4), "float32"))
    optimizer.build([variable])
    for _ in range(3):
        optimizer.apply([ops.ones((4, 4))], [variable])
    before = [ops.convert_to_numpy(v).copy() for v in optimizer.variables]
    TrainingRecipe.for_run(400, 32).apply_to(optimizer)
    after = [ops.convert_to_numpy(v) for v in optimizer.variables]
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    assert optimizer._learning_rate.first_step == 3
    assert optimizer.ema_momentum == pytest.approx(1 - 1 / 40)
