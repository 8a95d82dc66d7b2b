"""Attention against plain NumPy, and what masks, prefix and dropout mean."""

import sys

import numpy as np
import pytest
from keras import backend, ops

from keras_elf import layers
from keras_elf.layers.attention import fused_attention
from tests.layers.alone import array, randomise, tensor

# The sizes of `alone`, so that JAX compiles each operation once for both.
BATCH, WIDTH, HEADS, PREFIX, TEXT = 3, 8, 2, 2, 3


@pytest.fixture(scope="module")
def attention():
    layer = layers.ELFAttention(WIDTH, HEADS)
    layer.build((None, None, WIDTH))
    return randomise(layer)


def numpy_attention(layer, x, prefix_length=0, visible=None):
    """The textbook formulas, head by head; `visible` is (batch, queries, keys)."""
    batch, length, width = x.shape
    size = width // layer.num_heads
    positions = np.maximum(np.arange(length) - prefix_length, 0)
    turns = np.exp(1j * positions[:, None] * 10000.0 ** (-np.arange(size // 2) * 2 / size))

    def rms(h, norm):
        return h / np.sqrt((h**2).mean(-1, keepdims=True) + 1e-6) * array(norm.scale)

    def rotated(h):
        z = (h[..., 0::2] + 1j * h[..., 1::2]) * turns
        return np.stack([z.real, z.imag], -1).reshape(h.shape)

    qkv = x @ array(layer.qkv.kernel) + array(layer.qkv.bias)
    out = np.zeros((batch, length, width))
    for head in range(layer.num_heads):
        q, k, v = (
            qkv[..., part * width + head * size : part * width + (head + 1) * size]
            for part in range(3)
        )
        q, k = rotated(rms(q, layer.q_norm)), rotated(rms(k, layer.k_norm))
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(size)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights = weights if visible is None else weights * visible
        weights /= weights.sum(-1, keepdims=True)
        out[..., head * size : (head + 1) * size] = weights @ v
    return out @ array(layer.proj.kernel) + array(layer.proj.bias)


def with_prefix(mask):
    """The mask that `(batch, keys)` or `(batch, queries, keys)` over the text stands for."""
    batch = len(mask)
    visible = np.ones((batch, PREFIX + TEXT, PREFIX + TEXT), bool)
    if mask.ndim == 2:
        visible[:, :, PREFIX:] = mask[:, None]
    else:
        visible[:, PREFIX:, PREFIX:] = mask
    return visible


RANDOM_MASK = tensor(BATCH, TEXT, TEXT) > 0
# Each token sees itself at least, as softmax over nothing has no meaning.
MASKS = {
    "none": None,
    "keys": np.array([[1, 1, 0], [1, 0, 1], [0, 0, 1]]),
    "pairs": RANDOM_MASK | np.eye(TEXT, dtype=bool),
}


@pytest.mark.parametrize("kind", MASKS)
def test_equals_numpy(attention, kind):
    x, mask = tensor(BATCH, PREFIX + TEXT, WIDTH), MASKS[kind]
    out = array(attention(x, prefix_length=PREFIX, attention_mask=mask))
    visible = None if mask is None else with_prefix(mask)
    expected = numpy_attention(attention, x, PREFIX, visible)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


def test_padding_mask_equals_the_shorter_sequence(attention):
    x = tensor(BATCH, PREFIX + TEXT, WIDTH)
    mask = np.array([[1, 0, 0]] * BATCH)
    masked = array(attention(x, prefix_length=PREFIX, attention_mask=mask))
    shorter = array(attention(x[:, : PREFIX + 1], prefix_length=PREFIX))
    np.testing.assert_allclose(masked[:, : PREFIX + 1], shorter, atol=1e-5)


def test_block_diagonal_mask_equals_separate_sequences(attention):
    """Positions of the second sequence are shifted; only differences of positions count."""
    x = tensor(BATCH, 5, WIDTH)
    mask = np.zeros((BATCH, 5, 5), bool)
    mask[:, :3, :3] = mask[:, 3:, 3:] = True
    both = array(attention(x, attention_mask=mask))
    np.testing.assert_allclose(both[:, :3], array(attention(x[:, :3])), atol=1e-5)
    np.testing.assert_allclose(both[:, 3:], array(attention(x[:, 3:])), atol=1e-5)


def test_prefix_is_visible_through_every_mask(attention):
    x = tensor(BATCH, PREFIX + TEXT, WIDTH)
    changed = x.copy()
    changed[:, 1] += 1.0
    alone = np.repeat(np.eye(TEXT, dtype=bool)[None], BATCH, 0)
    outs = [array(attention(v, prefix_length=PREFIX, attention_mask=alone)) for v in (x, changed)]
    assert (np.abs(outs[0] - outs[1]).max(-1) > 1e-4).all()


def test_prefix_has_no_order(attention):
    """Unrotated, prefix tokens are a set: the text cannot tell their places apart."""
    x = tensor(BATCH, PREFIX + TEXT, WIDTH)
    swapped = np.concatenate([x[:, 1::-1], x[:, PREFIX:]], 1)
    out, other = (array(attention(v, prefix_length=PREFIX)) for v in (x, swapped))
    np.testing.assert_allclose(out[:, PREFIX:], other[:, PREFIX:], atol=1e-5)
    # The text itself has an order.
    reversed_text = np.concatenate([x[:, :PREFIX], x[:, :1:-1]], 1)
    other = array(attention(reversed_text, prefix_length=PREFIX))
    assert np.abs(out[:, PREFIX:] - other[:, :1:-1]).max() > 1e-2


def twin(attention, **settings):
    """A layer with other dropout and the same weights."""
    layer = layers.ELFAttention(WIDTH, HEADS, **settings)
    layer.build((None, None, WIDTH))
    layer.set_weights(attention.get_weights())
    return layer


@pytest.mark.parametrize("kind", ["keys", "pairs"])
def test_dropout_path_equals_the_fused_path(attention, kind):
    """At a rate that drops nothing, the hand-written attention is the fused one."""
    x = tensor(BATCH, PREFIX + TEXT, WIDTH)
    call = {"prefix_length": PREFIX, "attention_mask": MASKS[kind]}
    out = array(twin(attention, attention_dropout=1e-7)(x, **call, training=True))
    np.testing.assert_allclose(out, array(attention(x, **call)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("setting", ["dropout", "attention_dropout"])
def test_dropout_only_in_training(attention, setting):
    x = tensor(BATCH, PREFIX + TEXT, WIDTH)
    layer = twin(attention, **{setting: 0.5})
    expected = array(attention(x, prefix_length=PREFIX))
    quiet = array(layer(x, prefix_length=PREFIX, training=False))
    noisy = array(layer(x, prefix_length=PREFIX, training=True))
    np.testing.assert_allclose(quiet, expected, atol=1e-6)
    assert np.isfinite(noisy).all() and np.abs(noisy - expected).max() > 1e-2


@pytest.mark.skipif(backend.backend() != "jax", reason="only cuDNN's kernel on JAX asks for it")
def test_heads_that_no_fused_kernel_takes_give_the_same_when_padded(monkeypatch):
    shape = 2, 5, 3, 6
    q, k, v = (ops.convert_to_tensor(tensor(*shape, seed=n)) for n in range(3))
    plain = array(fused_attention(q, k, v))
    monkeypatch.setattr(sys.modules[fused_attention.__module__], "has_accelerator", lambda: True)
    padded = array(fused_attention(q, k, v))
    assert padded.shape == shape
    np.testing.assert_allclose(padded, plain, atol=1e-6)


@pytest.mark.parametrize("shape", [(2, 5), (2, 6, 5), (2, 5, 6), (3, 6), (6,), (2, 1, 6, 6)])
def test_a_mask_of_another_size_is_refused_with_both_sizes(shape):
    layer = layers.ELFAttention(16, num_heads=2)
    for prefix in (0, 3):
        x = np.zeros((2, 6 + prefix, 16), "float32")
        with pytest.raises(ValueError) as caught:
            layer(x, prefix_length=prefix, attention_mask=np.ones(shape, "bool"))
        assert "batch=2 and length=6" in str(caught.value)
        assert f"Received: {shape}" in str(caught.value)
        for fitting in ((2, 6), (1, 6), (2, 6, 6)):
            mask = np.ones(fitting, "bool")
            assert layer(x, prefix_length=prefix, attention_mask=mask).shape == x.shape
