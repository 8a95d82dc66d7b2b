"""What stands where in the prefix, and which numbers it accepts."""

import keras
import numpy as np
import pytest

from keras_elf import layers
from tests.layers.alone import array, randomise, tensor

WIDTH = 8
X = tensor(3, 5, WIDTH)
T, SCALE, GATE = (np.float32(v) for v in ([0.2, 0.9, 1.0], [1.0, 3.0, 0.5], [0.0, 1.0, 0.5]))


@pytest.fixture(scope="module")
def prefix():
    layer = layers.ContextPrefix(WIDTH, num_time_tokens=1, num_guidance_tokens=2, num_mode_tokens=3)
    layer.build((None, None, WIDTH))
    return randomise(layer)


def test_order_is_time_guidance_mode_text(prefix):
    out, prefix_length = prefix(X, T, guidance_scale=SCALE, decode=GATE)
    assert prefix_length == 6
    time, guidance, mode, text = np.split(array(out), [1, 3, 6], axis=1)
    embedded = array(prefix.time_embedding(T))[:, None]
    np.testing.assert_allclose(time, array(prefix.time_tokens) + embedded, atol=1e-5)
    embedded = array(prefix.guidance_embedding(SCALE))[:, None]
    np.testing.assert_allclose(guidance, array(prefix.guidance_tokens) + embedded, atol=1e-5)
    np.testing.assert_allclose(mode, GATE[:, None, None] * array(prefix.mode_tokens), atol=1e-6)
    np.testing.assert_array_equal(text, X)


def test_without_a_scale_the_guidance_tokens_are_left_out(prefix):
    with_scale, _ = prefix(X, T, guidance_scale=SCALE, decode=GATE)
    without, prefix_length = prefix(X, T, decode=GATE)
    assert prefix_length == 4 == prefix.prefix_length(with_guidance=False)
    assert prefix.prefix_length() == 6
    np.testing.assert_array_equal(array(without), np.delete(array(with_scale), [1, 2], axis=1))


@pytest.mark.parametrize(
    "gate", [1, 1.0, True, np.float32(1), np.ones(3, bool), np.ones((), "int32")]
)
def test_all_forms_of_a_gate_are_equal(prefix, gate):
    expected, _ = prefix(X, T, decode=np.ones(3, "float32"))
    np.testing.assert_array_equal(array(prefix(X, T, decode=gate)[0]), array(expected))


def test_scalar_time_and_scale_count_for_all_rows(prefix):
    expected, _ = prefix(X, np.full(3, 0.3, "float32"), guidance_scale=np.full(3, 2.0, "float32"))
    for scalar in (float, np.float32, keras.ops.convert_to_tensor):
        out, _ = prefix(X, scalar(0.3), guidance_scale=scalar(2.0))
        np.testing.assert_allclose(array(out), array(expected), atol=1e-5)


def test_gate_is_closed_by_default_and_keeps_the_slots(prefix):
    out, prefix_length = prefix(X, T)
    np.testing.assert_array_equal(array(out)[:, 1:prefix_length], 0.0)


def test_network_without_guidance_tokens():
    layer = layers.ContextPrefix(WIDTH, num_guidance_tokens=0)
    out, prefix_length = layer(X, T)
    assert prefix_length == 8 and out.shape == (3, 13, WIDTH)
    assert not [v.path for v in layer.variables if "guidance" in v.path]
    with pytest.raises(ValueError, match="num_guidance_tokens=0"):
        layer(X, T, guidance_scale=SCALE)
    with pytest.raises(ValueError, match="num_guidance_tokens=0"):
        layer(keras.Input((None, WIDTH)), keras.Input(()), guidance_scale=keras.Input(()))


@pytest.mark.parametrize(
    "arguments",
    [
        {"hidden_size": 0},
        {"num_time_tokens": 0},
        {"num_guidance_tokens": -1},
        {"num_mode_tokens": 1.5},
    ],
)
def test_bad_sizes_are_refused_by_name(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        layers.ContextPrefix(**{"hidden_size": WIDTH, **arguments})


def test_bad_inputs_are_refused():
    with pytest.raises(ValueError, match="hidden_size=8"):
        layers.ContextPrefix(WIDTH)(keras.Input((None, 7)), keras.Input(()))
    with pytest.raises(ValueError, match=r"\(batch, length, width\)"):
        layers.ContextPrefix(WIDTH)(keras.Input((WIDTH,)), keras.Input(()))
