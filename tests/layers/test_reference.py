"""Layers against numbers that the public code printed."""

import numpy as np

from keras_elf import layers
from keras_elf.layers.timestep_embedding import sinusoidal_features
from tests.layers.alone import array


def test_timestep_features(reference):
    ref = reference("jax/layers")
    features = array(sinusoidal_features(ref["timesteps"]))
    np.testing.assert_allclose(features, ref["timestep_embedding"], rtol=0, atol=2e-5)


def test_rotary(reference):
    ref = reference("jax/layers")
    # Recorded as (batch, heads, length, head_dim); the layer wants length before heads.
    x = ref["rope_in"].transpose(0, 2, 1, 3)
    rotated = layers.RotaryEmbedding()(x, prefix_length=int(ref["rope_num_prefix"]))
    expected = ref["rope_out"].transpose(0, 2, 1, 3)
    np.testing.assert_allclose(array(rotated), expected, rtol=0, atol=2e-5)


def test_rms_norm_of_the_attention_heads(reference):
    ref = reference("jax/layers")
    norm = layers.ELFAttention(8, 1).q_norm
    norm.build((None, 8))
    norm.scale.assign(ref["rms_w"])
    np.testing.assert_allclose(array(norm(ref["rms_in"])), ref["rms_out"], rtol=0, atol=2e-5)
