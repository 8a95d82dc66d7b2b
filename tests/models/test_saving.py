"""Keras's own files: the whole model, optimizer and averages included."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_elf.encoders import LatentEncoder
from keras_elf.training.run_setup import prepare_optimizer
from tests.models import small
from tests.presets.test_presets import averaged_model

pytestmark = pytest.mark.without_tensorflow


@pytest.fixture(scope="module")
def model():
    return averaged_model(
        label_drop_probability=0.2,
        preprocessor=small.preprocessor(condition_length=4, pad_with="end"),
    )


@pytest.fixture(scope="module")
def loaded(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("keras") / "model.keras"
    model.save(path)
    return keras.saving.load_model(path)


def test_weights_and_optimizer_state(model, loaded):
    ours, theirs = ({v.path: v for v in m.trainable_variables} for m in (model, loaded))
    assert set(ours) == set(theirs)
    for path, variable in ours.items():
        assert small.all_equal(*(small.values([v]) for v in (variable, theirs[path]))), path
    assert small.all_equal(*(small.values(m.encoder.variables) for m in (model, loaded)))
    assert small.all_equal(small.averages(model), small.averages(loaded))
    one, other = (m.optimizer.variables for m in (model, loaded))
    assert len(one) == len(other) and small.all_equal(small.values(one), small.values(other))
    assert int(ops.convert_to_numpy(loaded.optimizer.iterations)) == 1
    assert loaded.optimizer.get_config() == model.optimizer.get_config()


def test_configuration(model, loaded):
    ours, theirs = model.get_config(), loaded.get_config()
    for name in set(ours) - {"backbone", "encoder", "preprocessor"}:
        assert ours[name] == theirs[name], name
    assert loaded.loss_on_padding and loaded.latent_encoder.label_drop_probability == 0.2
    assert loaded.backbone.get_config() == model.backbone.get_config()
    assert loaded.encoder.frozen
    assert loaded.preprocessor.get_config()["pad_with"] == "end"


def test_text_before_and_after(model, loaded):
    settings = dict(num_samples=2, seed=0, verbose=False)
    assert model.generate(**settings) == loaded.generate(**settings)


def test_weights_file(model, tmp_path):
    path = tmp_path / "model.weights.h5"
    model.save_weights(path)
    other = small.generator(
        label_drop_probability=0.2,
        preprocessor=small.preprocessor(condition_length=4, pad_with="end"),
    )
    assert (
        small.error_between(
            small.values(other.trainable_variables), small.values(model.trainable_variables)
        )
        > 1e-2
    )
    other.load_weights(path)
    # Its optimizer took no state, so what the other model was used with becomes its own.
    assert small.all_equal(small.values(other.trainable_variables), small.averages(model))
    # Averages start at weights that were loaded, not at those the optimizer was built with.
    other.compile(optimizer=small.muon())
    other.optimizer.build(other.trainable_variables)
    prepare_optimizer(other, None, {})
    assert small.all_equal(small.averages(other), small.values(other.trainable_variables))


def test_latent_encoder_config(model):
    config = keras.saving.serialize_keras_object(model.latent_encoder)
    again = keras.saving.deserialize_keras_object(config)
    assert isinstance(again, LatentEncoder)
    assert again.get_config() == model.latent_encoder.get_config()
    assert np.isclose(again.label_drop_probability, 0.2)
