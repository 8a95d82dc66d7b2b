"""Configs and `.keras` files: everything an interrupted training needs."""

import inspect
import json

import keras
import numpy as np
import pytest

from keras_elf.optimizers import AdamW, Muon, WarmupSchedule
from tests.optimizers.stepping import averages_of, values_of, worst_error
from tests.optimizers.test_fit import fit, tiny_model

UNUSUAL = {
    Muon: {
        "learning_rate": WarmupSchedule(0.1, 5),
        "momentum": 0.8,
        "ns_steps": 3,
        "adam_beta_1": 0.7,
        "adam_beta_2": 0.9,
        "epsilon": 1e-6,
        "weight_decay": 0.1,
        "adam_weight_decay": 0.2,
        "clipnorm": 2.0,
        "clipvalue": None,
        "global_clipnorm": None,
        "use_ema": False,
        "ema_momentum": 0.5,
        "loss_scale_factor": 8.0,
        "gradient_accumulation_steps": 4,
        "exclude_layers": ["head$"],
        "name": "other",
    },
    AdamW: {
        "learning_rate": 0.25,
        "weight_decay": 0.1,
        "beta_1": 0.7,
        "beta_2": 0.9,
        "epsilon": 1e-6,
        "clipnorm": None,
        "clipvalue": 3.0,
        "global_clipnorm": None,
        "use_ema": False,
        "ema_momentum": 0.5,
        "loss_scale_factor": 8.0,
        "gradient_accumulation_steps": 4,
        "name": "other",
    },
}


@pytest.mark.parametrize("cls", [Muon, AdamW])
def test_config_holds_every_argument(cls):
    assert set(UNUSUAL[cls]) == set(inspect.signature(cls).parameters)
    optimizer = cls(**UNUSUAL[cls])
    config = json.loads(json.dumps(optimizer.get_config()))
    for key, value in UNUSUAL[cls].items():
        if key != "learning_rate":
            assert config[key] == value, key
    assert cls.from_config(config).get_config() == optimizer.get_config()
    assert cls.from_config(cls().get_config()).get_config() == cls().get_config()


@pytest.mark.parametrize("cls", [Muon, AdamW])
def test_serialised_object_is_ours(cls):
    """And not the class of the same name that Keras has."""
    saved = keras.saving.serialize_keras_object(cls(0.5))
    assert saved["registered_name"] == f"keras_elf>{cls.__name__}"
    assert type(keras.saving.deserialize_keras_object(saved)) is cls


@pytest.mark.parametrize("steps", [None, 3])
def test_keras_file_keeps_the_state(tmp_path, steps):
    """Saved in the middle of an accumulation, loaded, both trained on: the same weights."""
    schedule = WarmupSchedule(0.1, 3)
    model = tiny_model(Muon(schedule, ema_momentum=0.9, gradient_accumulation_steps=steps))
    fit(model, batch_size=8, epochs=2)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert type(loaded.optimizer) is Muon
    assert loaded.optimizer.get_config() == model.optimizer.get_config()
    ours, theirs = values_of(model.optimizer.variables), values_of(loaded.optimizer.variables)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)
    assert worst_error(averages_of(loaded.optimizer), averages_of(model.optimizer)) == 0
    assert worst_error(averages_of(loaded.optimizer), values_of(loaded.trainable_variables)) > 1e-3
    fit(model, batch_size=8)
    fit(loaded, batch_size=8)
    pairs = [values_of(m.trainable_variables) + averages_of(m.optimizer) for m in (model, loaded)]
    assert worst_error(*pairs) < 1e-6
