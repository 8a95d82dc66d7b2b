"""Labels out of range are refused wherever they come in; latents that do not fit are told of."""

import numpy as np
import pytest

from keras_elf import layers
from keras_elf.encoders import GaussianTable
from keras_elf.models import ELFGenerator
from tests.models import small


@pytest.fixture(scope="module")
def labelled():
    signals = [layers.TimeSignal(), layers.ScaleSignal(), layers.ModeSignal()]
    network = {"context_signals": [*signals, layers.LabelSignal(2)]}
    return small.generator(network=network, num_steps=2)


def data(label):
    return {"target": small.texts(6), "label": [label] * 6}


def test_in_training(labelled):
    before = small.values(labelled.backbone.variables)
    with pytest.raises(ValueError, match=r"`label` must be in \[0, 2\].*5"):
        labelled.fit(data(5), verbose=0)
    with pytest.raises(ValueError, match=r"`label` must be in \[0, 2\].*-1"):
        labelled.fit(iter([data(-1)]), steps_per_epoch=1, verbose=0)
    assert small.all_equal(before, small.values(labelled.backbone.variables))


def test_while_writing(labelled):
    with pytest.raises(ValueError, match=r"`label` must be in \[0, 2\].*7"):
        labelled.generate(signals={"label": [0, 7]}, verbose=False)
    assert len(labelled.generate(signals={"label": [0, 1]}, seed=0, verbose=False)) == 2


def test_labels_change_what_is_written(labelled):
    labelled.compile(optimizer=small.muon())
    history = labelled.fit(data(1), batch_size=6, epochs=2, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    small.enliven(labelled)
    options = {"num_samples": 4, "seed": 0, "verbose": False, "return_token_ids": True}
    one, other = (labelled.generate(signals={"label": label}, **options) for label in (0, 1))
    assert one.shape[0] == other.shape[0] == 4


def test_latents_of_another_size_are_told_of():
    wide = GaussianTable(small.VOCABULARY_SIZE, small.LATENT_DIM, stddev=2.0)
    model = ELFGenerator(small.backbone(), wide, small.preprocessor(), seed=0)
    with pytest.warns(UserWarning, match="standard deviation of [0-9.]+;.*latent_statistics"):
        model.fit(small.texts(64), epochs=1, verbose=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"signals": "label"}, "`signals` must be a dict"),
        ({"signals": {"label": "a"}}, "must be numbers"),
        ({"signals": {"lable": 1}}, r"\['lable'\].*\['label'\]"),
        ({"num_samples": 2, "guidance_scale": [1.0, 2.0, 3.0]}, "3 numbers, .* 2 texts"),
    ],
)
def test_values_that_are_none_are_refused(labelled, options, message):
    with pytest.raises(ValueError, match=message):
        labelled.generate(**options, verbose=False)


def test_latents_that_are_not_finite_are_no_text(labelled):
    def endless(t):
        return t / 0.0

    with pytest.raises(ValueError, match="latents are not finite.*ConditionGuidance"):
        labelled.generate(signals={"label": 1}, guidance_scale=endless, verbose=False)


def test_none_keeps_its_value_beside_whole_numbers():
    signals = [
        layers.TimeSignal(),
        layers.ModeSignal(),
        layers.NumberSignal(1, key="speed", empty=0.5),
    ]
    model = small.generator(network={"context_signals": signals}, num_steps=2)
    small.enliven(model)
    options = {"num_samples": 2, "seed": 0, "verbose": False, "guidance_scale": 4.0}
    whole, number = (model.generate(signals={"speed": s}, **options) for s in (2, 2.0))
    assert whole == number
