"""The time embedding keeps neighbouring times apart."""

import keras
import numpy as np

from keras_elf import layers
from keras_elf.layers.timestep_embedding import sinusoidal_features
from tests.layers.alone import array


def test_features_are_cosines_then_sines_of_the_raw_value():
    value = np.float32([0.0, 0.3, 5.0])
    features = array(sinusoidal_features(value, num_features=6))
    angles = value[:, None] * 10000.0 ** (-np.arange(3) / 3)
    expected = np.concatenate([np.cos(angles), np.sin(angles)], -1)
    np.testing.assert_allclose(features, expected, atol=1e-6)


def test_mixed_precision_is_the_float32_embedding_rounded_once():
    exact, mixed = (
        layers.TimestepEmbedding(64),
        layers.TimestepEmbedding(64, dtype="mixed_bfloat16"),
    )
    exact.build((None,))
    mixed.build((None,))
    mixed.set_weights(exact.get_weights())
    t = np.float32([0.999, 0.998, 0.5])
    expected, output = exact(t), mixed(t)
    assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"
    rounding = np.abs(array(output) - array(expected)) / np.abs(array(expected))
    assert rounding.max() <= 2**-8


def test_mixed_precision_tells_neighbouring_times_apart():
    """A trained embedding's steep direction shows the same step in both precisions."""
    exact, mixed = layers.TimestepEmbedding(4), layers.TimestepEmbedding(4, dtype="mixed_bfloat16")
    exact.build((None,))
    # Reads t off the first sine: output about 1000 (sin t - sin 0.9985), a unit a 1/1800.
    for variable in exact.variables:
        variable.assign(np.zeros(variable.shape))
    first = np.zeros((256, 4), "float32")
    first[128] = 2000.0
    exact.mlp_0.kernel.assign(first)
    exact.mlp_0.bias.assign(np.full(4, -2000.0 * np.sin(0.9975)))
    exact.mlp_2.kernel.assign(np.eye(4))
    mixed.build((None,))
    mixed.set_weights(exact.get_weights())
    t = np.float32([0.999, 0.998])
    step, rounded = (np.diff(array(layer(t)), axis=0) for layer in (exact, mixed))
    assert np.abs(step).min() > 0.5
    np.testing.assert_allclose(rounded, step, rtol=0.02)


def test_every_kernel_has_numbers_of_its_own():
    """At width 256 both kernels have one shape; one shared initializer made them equal."""
    layer = layers.TimestepEmbedding(256)
    layer.build((None,))
    first, second = array(layer.mlp_0.kernel), array(layer.mlp_2.kernel)
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.05
    assert abs(first.std() - 0.02) < 0.001 and abs(second.std() - 0.02) < 0.001
