"""Properties of the rotary embedding."""

import keras
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_elf import layers
from tests.layers.alone import array, tensor

LENGTH, SIZE = 7, 8


def rotated_everywhere(vector, prefix_length=0):
    """`(LENGTH, SIZE)`: one vector put at every position and rotated."""
    x = np.broadcast_to(np.float32(vector), (1, LENGTH, 1, SIZE))
    return array(layers.RotaryEmbedding()(x, prefix_length=prefix_length))[0, :, 0]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31), st.integers(0, 3))
def test_scores_depend_on_differences_of_positions(seed, prefix_length):
    q, k = np.random.default_rng(seed).standard_normal((2, SIZE))
    q, k = (rotated_everywhere(v, prefix_length)[prefix_length:] for v in (q, k))
    scores = q @ k.T
    np.testing.assert_allclose(scores[1:, 1:], scores[:-1, :-1], atol=1e-4)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31), st.integers(0, LENGTH - 1))
def test_lengths_of_vectors_are_kept_and_the_prefix_is_not_turned(seed, prefix_length):
    vector = np.random.default_rng(seed).standard_normal(SIZE)
    rotated = rotated_everywhere(vector, prefix_length)
    norms = np.linalg.norm(rotated, axis=-1)
    np.testing.assert_allclose(norms, np.linalg.norm(vector), rtol=1e-5)
    # The first text token has position 0.
    unturned = np.broadcast_to(np.float32(vector), (prefix_length + 1, SIZE))
    np.testing.assert_allclose(rotated[: prefix_length + 1], unturned, atol=1e-6)


def test_pairs_are_interleaved():
    """The first pair turns by one radian a position, the others more slowly."""
    vector = np.array([1, 0, 0, 0, 0, 0, 0, 0])
    rotated = rotated_everywhere(vector)
    expected = np.zeros((LENGTH, SIZE))
    expected[:, 0], expected[:, 1] = np.cos(np.arange(LENGTH)), np.sin(np.arange(LENGTH))
    np.testing.assert_allclose(rotated, expected, atol=1e-6)


def test_theta_sets_the_slowest_pair():
    x = np.broadcast_to(np.float32([0, 0, 1, 0]), (1, LENGTH, 1, 4))
    rotated = array(layers.RotaryEmbedding(theta=100.0)(x))[0, :, 0]
    np.testing.assert_allclose(rotated[:, 2], np.cos(np.arange(LENGTH) / 10), atol=1e-6)


def test_bfloat16_is_rounded_only_once():
    """Angles and products are float32: bfloat16 positions would be off by whole steps."""
    x = keras.ops.cast(tensor(1, 300, 1, SIZE), "bfloat16")
    exact = array(layers.RotaryEmbedding()(keras.ops.cast(x, "float32")))
    mixed = array(layers.RotaryEmbedding(dtype="mixed_bfloat16")(x))
    assert np.abs(mixed - exact).max() < 2**-8 * np.abs(exact).max()
