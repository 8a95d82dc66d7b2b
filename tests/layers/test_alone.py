"""Each public layer by itself: shapes, configs, files, gradients, precision."""

import inspect

import keras
import numpy as np
import pytest
from keras import ops

from keras_elf import layers
from tests.layers.alone import CASES, FLOAT32_OUTPUT, LATENT, WIDTH, array, build, randomise, tensor

every_layer = pytest.mark.parametrize("name", CASES)


def paths(model):
    return [v.path for v in model.trainable_variables]


def test_no_public_layer_is_left_out():
    # The base makes no tokens; `test_context_signals` has one of a user's own.
    assert set(CASES) == set(layers.__all__) - {"ContextSignal"}


@every_layer
def test_symbolic_length_agrees_with_the_run(name):
    model, _, inputs = build(name)
    output = model(inputs(5))
    for symbolic, real in zip(model.output_shape, output.shape, strict=True):
        assert symbolic in (None, real)
    assert keras.backend.standardize_dtype(output.dtype) == model.output.dtype
    assert model.output_shape[-1] is not None


@every_layer
def test_config_makes_an_equal_layer(name):
    _, layer, _ = build(name)
    copy = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert type(copy) is type(layer)
    assert copy.get_config() == layer.get_config()
    arguments = inspect.signature(type(layer).__init__).parameters
    assert set(arguments) - {"self", "kwargs"} <= set(layer.get_config())


@every_layer
def test_file_gives_equal_outputs(name, tmp_path):
    model, _, inputs = build(name)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert paths(loaded) == paths(model)
    np.testing.assert_allclose(array(loaded(inputs(5))), array(model(inputs(5))), atol=1e-6)


@every_layer
def test_mixed_bfloat16_is_finite_and_close(name):
    exact, _, inputs = build(name)
    model, _, _ = build(name, "mixed_bfloat16")
    output = model(inputs(5))
    expected = array(exact(inputs(5)))
    assert {v.dtype for v in model.trainable_variables} <= {"float32"}
    dtype = "float32" if name in FLOAT32_OUTPUT else "bfloat16"
    assert keras.backend.standardize_dtype(output.dtype) == dtype
    assert np.isfinite(array(output)).all()
    assert np.abs(array(output) - expected).max() < 0.05 * max(np.abs(expected).max(), 1)


def test_bfloat16_heads_round_nothing_but_their_input():
    """A head in a bfloat16 model equals the float32 head on the same hidden states."""
    hidden = ops.cast(tensor(2, 3, WIDTH), "bfloat16")
    head, exact = layers.DenoisingHead(LATENT, dtype="mixed_bfloat16"), layers.DenoisingHead(LATENT)
    for layer in (head, exact):
        layer.build((None, None, WIDTH))
        randomise(layer)
    expected = array(exact(ops.cast(hidden, "float32")))
    np.testing.assert_allclose(array(head(hidden)), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["ContextPrefix", "ELFAttention", "ELFBlock"])
def test_variables_do_not_depend_on_the_optional_inputs(name):
    model, layer, _ = build(name)
    expected = [(v.path.split("/", 1)[1], v.shape) for v in layer.trainable_variables]
    copy = type(layer).from_config(layer.get_config())
    required = [keras.Input(())] if name == "ContextPrefix" else []
    copy(keras.Input((None, WIDTH)), *required)
    assert [(v.path.split("/", 1)[1], v.shape) for v in copy.trainable_variables] == expected


def test_self_conditioning_variables_exist_without_a_self_condition():
    layer = layers.SelfConditioningProj(LATENT)
    z = tensor(1, 2, LATENT)
    np.testing.assert_array_equal(array(layer(z)), z)
    assert [v.shape for v in layer.variables] == [(2 * LATENT, LATENT), (LATENT,)]


def somebody_elses_model():
    """All layers in one model: latents, earlier latents, t, w, gate -> (latents, logits)."""
    z, previous = keras.Input((None, LATENT)), keras.Input((None, LATENT))
    t, scale, gate = (keras.Input(()) for _ in range(3))
    x = layers.SelfConditioningProj(LATENT)(z, previous)
    x = layers.BottleneckTextProj(WIDTH, bottleneck_dim=4)(x)
    x, prefix_length = layers.ContextPrefix(WIDTH)(x, t, guidance_scale=scale, decode=gate)
    x = layers.ELFBlock(WIDTH, num_heads=2)(x, prefix_length=prefix_length)
    x = x[:, prefix_length:]
    clean = layers.DenoisingHead(LATENT)(x)
    logits = layers.TiedUnembedding(13, embedding_dim=LATENT)(x)
    return randomise(keras.Model([z, previous, t, scale, gate], [clean, logits]))


def somebody_elses_inputs(length):
    numbers = np.array([[0.2, 0.9], [1.0, 3.0], [0.0, 1.0]], "float32")
    return [tensor(2, length, LATENT), tensor(2, length, LATENT, seed=1), *numbers]


def test_a_fit_step_reaches_every_variable():
    model = somebody_elses_model()
    assert len(model.trainable_variables) == len(model.variables)
    before = [array(v) for v in model.variables]
    inputs = somebody_elses_inputs(length=4)
    targets = [tensor(2, 4, LATENT, seed=2), tensor(2, 4, 13, seed=3)]
    model.compile(keras.optimizers.SGD(0.1), loss=["mse", "mse"])
    model.fit(inputs, targets, batch_size=2, epochs=1, verbose=0)
    for variable, old in zip(model.variables, before, strict=True):
        assert np.isfinite(array(variable)).all(), variable.path
        assert np.abs(array(variable) - old).max() > 1e-6, variable.path
    # A length of its own for prediction: nothing in the graph has frozen the first one.
    clean, logits = model.predict(somebody_elses_inputs(length=3), verbose=0)
    assert clean.shape == (2, 3, LATENT) and logits.shape == (2, 3, 13)
