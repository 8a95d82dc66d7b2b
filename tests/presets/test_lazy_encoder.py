"""An encoder is loaded when it is needed, and not before."""

import concurrent.futures
import json
import pathlib
import shutil

import numpy as np
import pytest
from keras import ops

from keras_elf.encoders import T5Encoder
from keras_elf.models import ELFGenerator
from tests.models import small

FIXTURES = pathlib.Path(__file__).parent / "fixtures"
OLD = FIXTURES / "before_lazy_encoder"
# Recorded with the library as it was when it loaded every encoder at once; equal on all backends.
IDS = json.loads((FIXTURES / "ids_of_before_lazy_encoder.json").read_text())
CONDITIONS = ["In the beginning", "And God"]


@pytest.fixture
def preset(tmp_path):
    """The old preset, with the vocabulary of the tests: that alone is as large as the rest."""
    directory = pathlib.Path(shutil.copytree(OLD, tmp_path / "preset"))
    assets = directory / "assets/tokenizer"
    assets.mkdir(parents=True)
    small.preprocessor().tokenizer.save_assets(str(assets))
    return directory


def waits(model):
    return model.latent_encoder.deferred is not None


def unconditional(model):
    options = {"num_samples": 3, "seed": 0, "verbose": False, "return_token_ids": True}
    return model.generate(**options).tolist()


@pytest.mark.filterwarnings("ignore:.*were too long")
def test_a_preset_of_before_gives_the_same_ids(preset):
    model = ELFGenerator.from_preset(preset)
    assert waits(model)
    model.compile(optimizer=small.muon())
    assert unconditional(model) == IDS["unconditional"]
    assert waits(model)
    ids = model.generate(CONDITIONS, seed=1, verbose=False, return_token_ids=True)
    assert not waits(model)
    assert ids.tolist() == IDS["conditional"]
    assert unconditional(model) == IDS["unconditional"]


def expected_encoder(preset):
    """The weights as they lie in the file, read without this library."""
    import h5py

    found = []
    with h5py.File(preset / "task.weights.h5") as file:
        group = file["layers/latent_encoder/encoder"]
        group.visititems(lambda _, x: found.append(x[()]) if isinstance(x, h5py.Dataset) else None)
    return sorted(found, key=lambda x: (x.shape, float(x.sum())))


NEEDS = {
    "encoder": lambda model: model.encoder,
    "variables": lambda model: model.variables,
    "count": lambda model: model.count_params(),
    "call": lambda model: model(np.ones((1, small.LENGTH), "int32")),
    "fit": lambda model: model.fit(small.texts(6), batch_size=6, epochs=1, verbose=0),
    "evaluate": lambda model: model.evaluate(small.texts(6), batch_size=6, verbose=0),
    "predict": lambda model: model.predict(small.texts(6), batch_size=6, verbose=0),
    "weights": lambda model: model.set_weights(model.get_weights()),
}


@pytest.mark.filterwarnings("ignore:.*were too long", "ignore:.*padding", "ignore:.*short")
@pytest.mark.parametrize("need", NEEDS)
def test_whatever_needs_it_loads_it(preset, need):
    model = ELFGenerator.from_preset(preset)
    assert waits(model)
    NEEDS[need](model)
    assert not waits(model)
    encoder = model.encoder
    assert isinstance(encoder, T5Encoder) and encoder.frozen and not encoder.trainable_variables
    values = sorted(small.values(encoder.variables), key=lambda x: (x.shape, float(x.sum())))
    assert small.all_equal(values, expected_encoder(preset))
    assert len(model.variables) == len(ELFGenerator.from_preset(preset).variables)


def test_threads_get_one_encoder(preset):
    model = ELFGenerator.from_preset(preset)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: model.encoder, range(16)))
    assert len({id(encoder) for encoder in found}) == 1


def test_saving_copies_it_unloaded(preset, tmp_path):
    model = ELFGenerator.from_preset(preset)
    model.save_to_preset(tmp_path / "copy")
    assert waits(model)
    assert small.all_equal(expected_encoder(tmp_path / "copy"), expected_encoder(preset))
    assert ELFGenerator.from_preset(tmp_path / "copy").get_config() == model.get_config()
    shutil.rmtree(preset)
    loaded = ELFGenerator.from_preset(tmp_path / "copy")
    rows = np.arange(5, 5 + small.LENGTH)[None].astype("int32")
    clean = ops.convert_to_numpy(loaded(rows)["clean"])
    other = ops.convert_to_numpy(ELFGenerator.from_preset(OLD, preprocessor=None)(rows)["clean"])
    np.testing.assert_allclose(clean, other, atol=1e-6)


def test_saving_to_where_it_is_loaded_from(preset):
    model = ELFGenerator.from_preset(preset)
    before = expected_encoder(preset)
    model.save_to_preset(preset)
    assert not waits(model)
    assert small.all_equal(expected_encoder(preset), before)


def test_keras_files_hold_it(preset, tmp_path):
    import keras

    model = ELFGenerator.from_preset(preset)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert unconditional(loaded) == IDS["unconditional"]
    assert small.all_equal(
        small.values(loaded.encoder.variables), small.values(model.encoder.variables)
    )
    model.save_weights(tmp_path / "model.weights.h5")
    late = ELFGenerator.from_preset(preset)
    late.load_weights(tmp_path / "model.weights.h5")
    assert not waits(late)


def test_a_file_that_went_or_was_replaced(preset):
    model = ELFGenerator.from_preset(preset)
    other = ELFGenerator.from_preset(preset)
    (preset / "task.weights.h5").rename(preset / "gone")
    with pytest.raises(ValueError, match="is gone or was replaced"):
        model.encoder  # noqa: B018
    shutil.copy(preset / "gone", preset / "task.weights.h5")
    with pytest.raises(ValueError, match="`model.encoder` loads the encoder at once"):
        other.encoder  # noqa: B018
    assert unconditional(model) == IDS["unconditional"]


def test_an_encoder_that_trains_is_loaded_at_once(tmp_path):
    model = small.generator("learned")
    model.save_to_preset(tmp_path / "preset")
    assert not waits(ELFGenerator.from_preset(tmp_path / "preset"))
    assert not waits(ELFGenerator.from_preset(OLD, load_weights=False, preprocessor=None))


def test_the_summary_says_so_and_lists_the_network(preset):
    model, lines = ELFGenerator.from_preset(preset), []
    model.summary(print_fn=lambda text, **_: lines.append(text))
    text = "\n".join(lines)
    assert waits(model) and "T5Encoder, not loaded yet" in text
    assert f"{model.backbone.count_params():,}" in text and "blocks_0" in text
    model.encoder  # noqa: B018
    lines.clear()
    model.summary(print_fn=lambda text, **_: lines.append(text))
    assert "not loaded yet" not in "\n".join(lines)
