"""Signals of a context prefix: the library's, one of a user's own, and bad values."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_elf import layers
from tests.layers.alone import array, randomise, tensor

WIDTH = 8
X = tensor(3, 5, WIDTH)
T, SCALE, GATE = (np.float32(v) for v in ([0.2, 0.9, 1.0], [1.0, 3.0, 0.5], [0.0, 1.0, 0.5]))


@keras.saving.register_keras_serializable(package="keras_elf_tests")
class LengthSignal(layers.ContextSignal):
    """The example of `ContextSignal`, as a user would write it."""

    key, empty, value_dtype = "length", 0, "int32"

    def build(self, value_shape=None):
        self.table = self.add_weight((65, self.num_tokens * self.width), name="table")
        self.built = True

    def call(self, value):
        rows = ops.take(self.table, ops.minimum(value, 64), axis=0)
        return ops.reshape(rows, (-1, self.num_tokens, self.width))


@keras.saving.register_keras_serializable(package="keras_elf_tests")
class PercentSignal(layers.TimeSignal):
    """A published signal that a user has changed."""

    def call(self, value):
        return super().call(100.0 * value)


def published(**overrides):
    return [
        layers.TimeSignal(1, **overrides),
        layers.ScaleSignal(2, **overrides),
        layers.ModeSignal(3, **overrides),
    ]


def built(signals, **overrides):
    layer = layers.ContextPrefix(WIDTH, signals=signals, **overrides)
    layer.build((None, None, WIDTH))
    return randomise(layer)


@pytest.fixture(scope="module")
def labelled():
    return built([*published(), layers.LabelSignal(4, 2), LengthSignal(1)])


def test_weights_stand_where_older_files_have_them():
    """Files know attributes, optimizer states the order, adapters the numbering of layers."""
    dense = [f"mlp_{i}/{kind}" for i in (0, 2) for kind in ("kernel", "bias")]
    expected = [
        "time_tokens",
        "guidance_tokens",
        "mode_tokens",
        *(f"{name}_embedding/{path}" for name in ("time", "guidance") for path in dense),
    ]
    by_list = layers.ContextPrefix(WIDTH, signals=published())
    for layer in (layers.ContextPrefix(WIDTH, 1, 2, 3), by_list):
        layer.build((None, None, WIDTH))
        assert [v.path.split("/", 1)[1] for v in layer.variables] == expected
        weighty = {x.path.split("/", 1)[1] for x in layer._flatten_layers(False) if x.weights}
        assert weighty == {path.rsplit("/", 1)[0] for path in expected[3:]} | {
            "time_embedding",
            "guidance_embedding",
        }
        assert layer.time_tokens is layer.variables[0]
        assert layer.guidance_embedding.mlp_0.kernel is layer.variables[7]


def test_a_list_of_the_published_three_is_the_published_prefix(tmp_path):
    by_number = randomise(_model(layers.ContextPrefix(WIDTH, 1, 2, 3)))
    by_list = _model(layers.ContextPrefix(WIDTH, signals=published()))
    by_number.save_weights(tmp_path / "a.weights.h5")
    by_list.load_weights(tmp_path / "a.weights.h5")
    inputs = [X, T, SCALE, GATE]
    np.testing.assert_array_equal(array(by_list(inputs)), array(by_number(inputs)))


def _model(layer):
    x = keras.Input((None, WIDTH))
    t, scale, gate = (keras.Input(()) for _ in range(3))
    return keras.Model([x, t, scale, gate], layer(x, t, guidance_scale=scale, decode=gate)[0])


def test_tokens_stand_in_the_order_of_the_list(labelled):
    out, prefix_length = labelled(
        X, T, guidance_scale=SCALE, decode=GATE, signals={"length": [5, 0, 99], "label": [3, 4, 0]}
    )
    assert prefix_length == 9 == labelled.prefix_length()
    time, scale, mode, label, length, text = np.split(array(out), [1, 3, 6, 8, 9], axis=1)
    three = {"t": (time, T), "guidance_scale": (scale, SCALE), "decode": (mode, GATE)}
    for key, (found, value) in three.items():
        np.testing.assert_allclose(found, array(labelled.signals[key](value)), atol=1e-5)
    np.testing.assert_array_equal(label, array(labelled.signals["label"].tokens)[[3, 4, 0]])
    np.testing.assert_array_equal(length[:, 0], array(labelled.signals["length"].table)[[5, 0, 64]])
    np.testing.assert_array_equal(text, X)


def test_a_value_not_given_is_the_empty_one(labelled):
    given = dict(guidance_scale=SCALE, decode=GATE)
    expected, _ = labelled(X, T, signals={"label": 4, "length": 0}, **given)
    for signals in (None, {}, {"label": None}, {"label": 4}, {"length": [0, 0, 0]}):
        out, prefix_length = labelled(X, T, signals=signals, **given)
        assert prefix_length == 9
        np.testing.assert_array_equal(array(out), array(expected))
    other, _ = labelled(X, T, signals={"label": 2}, **given)
    changed = np.abs(array(other) - array(expected)).max(axis=(0, 2))
    assert changed[6:8].min() > 0.1 and not np.delete(changed, [6, 7]).any()


def test_a_signal_without_an_empty_value_is_left_out():
    layer = built([layers.TimeSignal(1), layers.NumberSignal(2, key="pace")])
    assert layer(X, T)[1] == 1 == layer.prefix_length(signals=())
    out, prefix_length = layer(X, T, signals={"pace": [0.1, 0.2, 0.3]})
    assert prefix_length == 3 == layer.prefix_length() and out.shape == (3, 8, WIDTH)
    # Nothing here reads a gate: a network may tell its modes apart by time alone.
    np.testing.assert_array_equal(array(layer(X, T, decode=1.0)[0]), array(layer(X, T)[0]))


def test_a_changed_published_signal_keeps_its_own_weights(tmp_path):
    layer = built([PercentSignal(1), layers.TimeSignal(2, key="start"), layers.ModeSignal(1)])
    found = [v.path.split("/", 1)[1] for v in layer.variables]
    assert found[:1] == ["mode_tokens"] and {"t/tokens", "start/tokens"} <= set(found)
    plain = layers.TimeSignal(1, WIDTH)
    plain.build()
    plain.set_weights(layer.signals["t"].get_weights())
    np.testing.assert_array_equal(array(layer.signals["t"](T)), array(plain(100 * T)))


@pytest.mark.parametrize("kind", [list, np.int64, np.int32, "tensor", "uint8"])
def test_all_forms_of_a_label_are_equal(labelled, kind):
    if kind == "tensor":
        ids = ops.convert_to_tensor([1, 2, 4], "int32")
    else:
        ids = [1, 2, 4] if kind is list else np.array([1, 2, 4], kind)
    out, _ = labelled(X, T, signals={"label": ids})
    tokens = array(labelled.signals["label"].tokens)
    np.testing.assert_array_equal(array(out)[:, 4:6], tokens[[1, 2, 4]])


@pytest.mark.parametrize(
    "call, told",
    [
        (dict(signals={"label": [0, 5, 1]}), [r"\[0, 4\]", r"Received: \[5\]"]),
        (dict(signals={"label": -1}), ["num_classes=4", r"Received: \[-1\]"]),
        (dict(signals={"label": [0.5, 1, 2]}), ["`label` must be whole numbers", "float64"]),
        (dict(signals={"label": GATE}), ["whole numbers", "float32"]),
        (dict(signals={"label": [[1], [2], [3]]}), ["one value a row", r"\(3, 1\)"]),
        (dict(signals={"label": [1, 2]}), ["`label`", "2 values for 3 rows"]),
        (dict(signals={"lable": [1, 2, 3]}), [r"\['label', 'length'\]", r"\['lable'\]"]),
        (dict(signals={"t": T}), [r"\['label', 'length'\]", r"Received: \['t'\]"]),
        (dict(guidance_scale=SCALE[:2]), ["`guidance_scale`", "2 values for 3 rows"]),
    ],
)
def test_bad_values_are_refused(labelled, call, told):
    with pytest.raises(ValueError) as error:
        labelled(X, T, **call)
    for part in told:
        assert error.match(part)


def test_labels_that_nobody_could_check_are_no_numbers():
    signal = randomise(_built_label())
    out = array(signal(ops.convert_to_tensor([0, 7, -1, 4], "int32")))
    assert np.isnan(out[1:3]).all() and np.isfinite(out[[0, 3]]).all()


def _built_label():
    signal = layers.LabelSignal(4, 2, WIDTH)
    signal.build()
    return signal


@pytest.mark.parametrize(
    "make, told",
    [
        (lambda: layers.LabelSignal(0), "num_classes"),
        (lambda: layers.LabelSignal(2.5), "num_classes"),
        (lambda: layers.TimeSignal(0), "num_tokens"),
        (lambda: layers.NumberSignal(2), "`key` of NumberSignal"),
        (lambda: layers.LabelSignal(2, key="a/b"), "`key` of LabelSignal"),
        (lambda: layers.LabelSignal(2)([1]), "does not know the width"),
        (lambda: layers.ContextPrefix(WIDTH, signals=[]), "list of ContextSignals"),
        (lambda: layers.ContextPrefix(WIDTH, signals=["label"]), "Received: .'label'"),
        (lambda: layers.ContextPrefix(WIDTH, signals=2 * [layers.TimeSignal()]), "of its own"),
        (
            lambda: layers.ContextPrefix(WIDTH, signals=[layers.TimeSignal(2, 9)]),
            "hidden_size=9, and its ContextPrefix hidden_size=8",
        ),
    ],
)
def test_bad_arguments_are_refused(make, told):
    with pytest.raises(ValueError, match=told):
        make()


def test_a_signal_is_part_of_one_prefix():
    signals = [layers.TimeSignal(), layers.LabelSignal(2)]
    layers.ContextPrefix(WIDTH, signals=signals)
    with pytest.raises(ValueError, match="in use already"):
        layers.ContextPrefix(WIDTH, signals=signals)


def test_a_signal_that_makes_other_tokens_than_it_says_is_told():
    class Wrong(layers.ContextSignal):
        key = "wrong"

        def call(self, value):
            return ops.zeros((1, 2, WIDTH)) + value[:, None, None]

    layer = layers.ContextPrefix(WIDTH, signals=[Wrong(num_tokens=3)])
    with pytest.raises(ValueError, match=r"Wrong must make .*num_tokens=3.*\(1, 2, 8\)"):
        layer(X, T, signals={"wrong": 1.0})


def test_config_and_file(labelled, tmp_path):
    copy = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(labelled))
    assert copy.get_config() == labelled.get_config()
    assert [type(s) for s in copy.signals] == [type(s) for s in labelled.signals]
    x, t, label = keras.Input((None, WIDTH)), keras.Input(()), keras.Input((), dtype="int32")
    model = keras.Model([x, t, label], labelled(x, t, signals={"label": label})[0])
    assert model.output_shape == (None, None, WIDTH)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    inputs = [X, T, np.array([0, 1, 4], "int32")]
    np.testing.assert_array_equal(array(loaded(inputs)), array(model(inputs)))
    assert [v.path for v in loaded.variables] == [v.path for v in model.variables]


def test_a_reduced_policy_leaves_signals_exact():
    """Nothing of a time may be lost before it has become tokens."""
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        layer = built(published(), dtype="float32")
    finally:
        keras.config.set_dtype_policy("float32")
    one, other = (array(layer(X, np.float32(t))[0])[0, 0] for t in (0.9, 0.901))
    assert np.abs(one - other).max() > 1e-5
    assert keras.backend.standardize_dtype(layer(X, T)[0].dtype) == "float32"
