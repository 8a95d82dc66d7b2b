import keras
import numpy as np
import pytest

from keras_elf.optimizers import WarmupSchedule, scaled_learning_rate


def rates(schedule, steps):
    return [float(schedule(step)) for step in steps]


def test_linear_decay_over_the_last_third():
    schedule = WarmupSchedule(3.0, 2, decay="linear", total_steps=30, decay_steps=10, final=1.0)
    got = rates(schedule, [0, 1, 2, 20, 25, 30, 99])
    np.testing.assert_allclose(got, [0.0, 1.5, 3.0, 3.0, 2.0, 1.0, 1.0], rtol=1e-6)


def test_cosine_over_the_last_steps_only():
    schedule = WarmupSchedule(2.0, 0, decay="cosine", total_steps=10, decay_steps=4)
    np.testing.assert_allclose(rates(schedule, [0, 6, 8, 10]), [2, 2, 1, 0], atol=1e-6)


def test_no_warmup_starts_at_the_peak():
    assert rates(WarmupSchedule(0.5, 0), [0, 7]) == [0.5, 0.5]


def test_takes_variables_and_keeps_float32():
    step = keras.Variable(5, dtype="int32", trainable=False)
    rate = WarmupSchedule(1.0, 10)(step)
    assert keras.backend.standardize_dtype(rate.dtype) == "float32"
    assert float(rate) == 0.5


def test_config_round_trip():
    schedule = WarmupSchedule(2.0, 3, decay="linear", total_steps=30, decay_steps=10, final=1.0)
    config = keras.optimizers.schedules.serialize(schedule)
    back = keras.optimizers.schedules.deserialize(config)
    assert isinstance(back, WarmupSchedule) and back.get_config() == schedule.get_config()


def test_scaled_learning_rate():
    assert scaled_learning_rate(512) == 2e-3
    assert scaled_learning_rate(64, base=4e-3) == 1e-3
    with pytest.raises(ValueError, match="`batch_size`"):
        scaled_learning_rate(0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"decay": "cosin"}, "Did you mean 'cosine'"),
        ({"peak": -1.0}, "`peak`"),
        ({"warmup_steps": -1}, "`warmup_steps`"),
        ({"warmup_steps": 1.5}, "`warmup_steps`"),
        ({"final": -1.0}, "`final`"),
        ({"decay": "cosine"}, "`total_steps` must be given"),
        ({"decay": "cosine", "total_steps": 5}, "`total_steps` must be at least 6"),
        ({"decay": "linear", "total_steps": 9, "decay_steps": 8}, "at least 13"),
        ({"decay": "linear", "total_steps": 9, "decay_steps": 0}, "`decay_steps`"),
        ({"final": 0.1}, "need `decay='cosine'`"),
        ({"decay_steps": 3}, "need `decay='cosine'`"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        WarmupSchedule(**{"peak": 1.0, "warmup_steps": 5, **arguments})
