"""A backbone that is told more than time, scale and mode."""

import json
import subprocess
import sys

import keras
import numpy as np
import pytest
from keras import ops

from keras_elf import layers
from keras_elf.models import ELFBackbone, parameter_count
from tests.gradients import ValueAndGradients
from tests.models import small
from tests.models.test_backbone import as_numpy, inputs


def context():
    return [
        layers.TimeSignal(2),
        layers.ScaleSignal(1),
        layers.ModeSignal(1),
        layers.LabelSignal(3, num_tokens=2),
    ]


@pytest.fixture(scope="module")
def backbone():
    keras.utils.set_random_seed(0)
    return small.enliven_backbone(small.backbone(context_signals=context()))


def test_what_it_says_of_itself(backbone):
    assert backbone.signals == {"label": 3} and backbone.takes_guidance_scale
    numbers = backbone.num_time_tokens, backbone.num_guidance_tokens, backbone.num_mode_tokens
    assert numbers == (2, 1, 1) and backbone.context_prefix.prefix_length() == 6
    plain = small.backbone(num_guidance_tokens=0)
    assert plain.signals == {} and not plain.takes_guidance_scale
    assert set(plain.input) == {"z", "self_condition", "t", "decode"}
    assert "context_signals" not in plain.get_config()


def test_graph_and_method_agree(backbone):
    x, label = inputs(), np.array([2, 0], "int32")
    assert set(backbone.input) == {*x, "label"}
    want = as_numpy(backbone.hidden_states(**x, signals={"label": label}))
    np.testing.assert_allclose(as_numpy(backbone({**x, "label": label})), want, atol=1e-5)
    want = as_numpy(backbone.hidden_states(**x))
    np.testing.assert_allclose(as_numpy(backbone({**x, "label": None})), want, atol=1e-5)


def test_the_label_reaches_its_row_in_both_modes(backbone):
    x = inputs()  # the second row is in decode mode
    hidden = {i: as_numpy(backbone.hidden_states(**x, signals={"label": [i, i]})) for i in range(4)}
    for one in range(4):
        for other in range(one):
            difference = np.abs(hidden[one] - hidden[other]).max(axis=(1, 2))
            assert difference.min() > 1e-4, (one, other)
    np.testing.assert_array_equal(as_numpy(backbone.hidden_states(**x)), hidden[3])
    mixed = as_numpy(backbone.hidden_states(**x, signals={"label": [1, 3]}))
    np.testing.assert_allclose(mixed, np.stack([hidden[1][0], hidden[3][1]]), atol=1e-6)


def test_gradient_reaches_the_rows_that_were_given(backbone):
    tokens = backbone.context_prefix.signals["label"].tokens

    def loss():
        hidden = backbone.hidden_states(**inputs(), signals={"label": [1, 3]})
        return ops.mean(ops.square(backbone.denoising_head(hidden)))

    _, (gradient,) = ValueAndGradients(loss, [tokens])()
    size = np.abs(gradient).max(axis=(1, 2))
    assert size[[1, 3]].min() > 0 and not size[[0, 2]].any()


def test_it_learns_what_a_label_means():
    """Equal noise, two targets: only the label can tell them apart."""
    keras.utils.set_random_seed(1)
    backbone = small.backbone(context_signals=context())
    z = np.zeros((2, 4, small.LATENT_DIM), "float32")
    target = np.stack([np.full((4, small.LATENT_DIM), v, "float32") for v in (1.0, -1.0)])
    rows = {**inputs(length=4), "z": z, "self_condition": z, "label": np.array([0, 1], "int32")}
    rows |= {k: np.full(2, 0.5, "float32") for k in ("t", "guidance_scale", "decode")}
    model = keras.Model(backbone.input, backbone.denoising_head(backbone.output))
    model.compile(keras.optimizers.Adam(0.02), loss="mse")
    model.fit(rows, target, epochs=40, batch_size=2, verbose=0)
    # The best without the label is the mean of both, an error of 1.
    assert model.evaluate(rows, target, batch_size=2, verbose=0) < 0.3


def test_configuration(backbone):
    config = keras.saving.serialize_keras_object(backbone)
    json.dumps(config)
    again = keras.saving.deserialize_keras_object(config)
    assert again.get_config()["context_signals"] == config["config"]["context_signals"]
    assert [v.path for v in again.variables] == [v.path for v in backbone.variables]
    again.set_weights(backbone.get_weights())
    x = {**inputs(), "signals": {"label": [2, 0]}}
    np.testing.assert_array_equal(
        as_numpy(again.hidden_states(**x)), as_numpy(backbone.hidden_states(**x))
    )
    assert parameter_count(**backbone.get_config()) == backbone.count_params()
    with_list = {**backbone.get_config(), "context_signals": context()}
    assert parameter_count(**with_list) == backbone.count_params()


LOAD = """
import sys
import tests.conftest
import keras, numpy as np
import keras_elf.models
backbone = keras.saving.load_model(sys.argv[1])
x = dict(np.load(sys.argv[2]))
label = x.pop("label")
hidden = backbone.hidden_states(**x, signals={"label": label})
np.save(sys.argv[3], keras.ops.convert_to_numpy(hidden))
"""


def test_saved_and_loaded_by_another_process(backbone, tmp_path):
    names = [str(tmp_path / name) for name in ("model.keras", "in.npz", "out.npy")]
    x, label = inputs(), np.array([2, 3], "int32")
    backbone.save(names[0])
    np.savez(names[1], **x, label=label)
    subprocess.run([sys.executable, "-c", LOAD, *names], check=True)
    want = as_numpy(backbone.hidden_states(**x, signals={"label": label}))
    np.testing.assert_allclose(np.load(names[2]), want, atol=1e-6)


def test_a_preset_keeps_its_signals(backbone, tmp_path):
    backbone.save_to_preset(str(tmp_path))
    loaded = ELFBackbone.from_preset(str(tmp_path))
    x = {**inputs(), "signals": {"label": [1, 3]}}
    np.testing.assert_array_equal(
        as_numpy(loaded.hidden_states(**x)), as_numpy(backbone.hidden_states(**x))
    )


@pytest.mark.parametrize(
    "signals, told",
    [
        ({"label": [0, 9]}, r"\[0, 3\].*Received: \[9\]"),
        ({"label": [0]}, None),
        ({"label": [0, 1, 2]}, "3 values for 2 rows"),
        ({"speaker": [0, 1]}, r"\['label'\].*Received: \['speaker'\]"),
    ],
)
def test_bad_values_are_refused(backbone, signals, told):
    if told is None:  # one value serves all rows
        backbone.hidden_states(**inputs(), signals=signals)
        return
    with pytest.raises(ValueError, match=told):
        backbone.hidden_states(**inputs(), signals=signals)


def test_bad_lists_are_refused():
    with pytest.raises(ValueError, match="other names than the network's own inputs"):
        small.backbone(context_signals=[layers.NumberSignal(key="z")])
    with pytest.raises(ValueError, match="list of ContextSignals"):
        small.backbone(context_signals="label")
    with pytest.raises(ValueError, match=r"values of \[\].*Received: \['label'\]"):
        small.backbone().hidden_states(inputs()["z"], 0.5, signals={"label": [0, 1]})


def test_adapters_and_integers_next_to_a_label(tmp_path):
    backbone = small.backbone(context_signals=context())
    backbone.quantize("int8")
    again = ELFBackbone.from_config(backbone.get_config())
    again.set_weights(backbone.get_weights())
    backbone.enable_lora(2)
    backbone.save_lora_weights(tmp_path / "a.lora.h5")
    again.load_lora_weights(tmp_path / "a.lora.h5")
    x = {**inputs(), "signals": {"label": [2, 0]}}
    np.testing.assert_allclose(
        as_numpy(again.hidden_states(**x)), as_numpy(backbone.hidden_states(**x)), atol=1e-5
    )
