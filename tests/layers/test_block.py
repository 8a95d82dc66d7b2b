"""The block and its feed-forward layer against their formulas."""

import numpy as np
import pytest

from keras_elf import layers
from tests.layers.alone import array, build, tensor

LENGTH, WIDTH, PREFIX = 5, 8, 2
MASK = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1]]) > 0


def numpy_swiglu(layer, x):
    a, b = np.split(x @ array(layer.w12.kernel) + array(layer.w12.bias), 2, axis=-1)
    return a / (1 + np.exp(-a)) * b @ array(layer.w3.kernel) + array(layer.w3.bias)


def numpy_rms(norm, x):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * array(norm.scale)


def test_swiglu_equals_the_formula():
    _, layer, inputs = build("SwiGLU")
    x = inputs(LENGTH)
    np.testing.assert_allclose(array(layer(x)), numpy_swiglu(layer, x), rtol=1e-4, atol=1e-5)


def test_block_equals_the_formula():
    """Pre-norm, two residuals; prefix and mask reach the attention."""
    _, block, _ = build("ELFBlock")
    x = tensor(3, LENGTH, WIDTH)
    attended = block.attn(numpy_rms(block.norm1, x), prefix_length=PREFIX, attention_mask=MASK)
    h = x + array(attended)
    expected = h + numpy_swiglu(block.mlp, numpy_rms(block.norm2, h))
    out = array(block(x, prefix_length=PREFIX, attention_mask=MASK))
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dropout", ["dropout", "attention_dropout"])
def test_dropout_of_a_block_acts_in_training_only(dropout):
    _, exact, _ = build("ELFBlock")
    block = layers.ELFBlock(WIDTH, 2, 3.0, **{dropout: 0.5})
    block.build((None, None, WIDTH))
    block.set_weights(exact.get_weights())
    x = tensor(3, LENGTH, WIDTH)
    quiet = array(exact(x, prefix_length=PREFIX, attention_mask=MASK))
    call = {"prefix_length": PREFIX, "attention_mask": MASK}
    np.testing.assert_allclose(array(block(x, **call, training=False)), quiet, atol=1e-6)
    assert np.abs(array(block(x, **call, training=True)) - quiet).max() > 1e-2


def test_inner_width_is_that_of_the_released_weights():
    widths = [layers.SwiGLU(width).inner_size for width in (32, 768, 1056, 1280)]
    assert widths == [85, 2048, 2816, 3413]
