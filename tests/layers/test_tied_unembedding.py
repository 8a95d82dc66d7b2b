"""The unembedding with a matrix of its own and with somebody else's table."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_elf import layers
from keras_elf.encoders import GaussianTable
from keras_elf.layers import tied_unembedding
from tests.gradients import ValueAndGradients
from tests.layers.alone import array, randomise, tensor

VOCABULARY, ROWS, LATENT, WIDTH = 11, 13, 6, 8
IDS = np.array([[1, 2, 3], [1, 0, 10]])


def language_model(tied, dtype=None):
    """ids -> Embedding -> Dense -> logits, the shape of many models."""
    ids = keras.Input((None,), dtype="int32")
    tokens = keras.layers.Embedding(ROWS, LATENT, name="tokens", dtype=dtype)
    hidden = keras.layers.Dense(WIDTH, activation="tanh", name="hidden", dtype=dtype)(tokens(ids))
    head = layers.TiedUnembedding(
        VOCABULARY, LATENT, tied_to=tokens if tied else None, name="head", dtype=dtype
    )
    return randomise(keras.Model(ids, head(hidden)))


def by_path(model):
    return {v.path: v for v in model.variables}


def test_matrix_of_its_own_equals_the_formula():
    layer = layers.TiedUnembedding(VOCABULARY, LATENT)
    layer.build((None, None, WIDTH))
    randomise(layer)
    x = tensor(2, 3, WIDTH)
    h = x @ array(layer.proj.kernel) + array(layer.proj.bias)
    gelu = 0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
    expected = gelu @ array(layer.unembed.kernel) + array(layer.unembed.bias)
    np.testing.assert_allclose(array(layer(x)), expected, atol=1e-5)
    np.testing.assert_allclose(array(layer.embed(x)), gelu, atol=1e-5)
    assert layer.unembed.kernel.shape == (LATENT, VOCABULARY)


def test_width_is_that_of_the_input_or_of_the_table():
    own = layers.TiedUnembedding(VOCABULARY)
    own.build((None, None, WIDTH))
    assert own.unembed.kernel.shape == (WIDTH, VOCABULARY)
    tied = layers.TiedUnembedding(VOCABULARY, tied_to=keras.layers.Embedding(ROWS, LATENT))
    tied.build((None, None, WIDTH))
    assert tied.embedding_dim == LATENT and tied.proj.kernel.shape == (WIDTH, LATENT)


def test_tied_table_is_one_variable_whose_spare_rows_are_not_used():
    tied, own = language_model(tied=True), language_model(tied=False)
    assert len(tied.variables) == len(own.variables) - 1
    shapes = {k: tuple(v.shape) for k, v in by_path(tied).items() if not k.startswith("hidden")}
    assert shapes == {
        "tokens/embeddings": (ROWS, LATENT),
        "head/proj/kernel": (WIDTH, LATENT),
        "head/proj/bias": (LATENT,),
        "head/bias": (VOCABULARY,),
    }
    before = array(tied(IDS))
    assert before.shape == (2, 3, VOCABULARY)
    table = by_path(tied)["tokens/embeddings"]
    rows = array(table).copy()
    rows[VOCABULARY:] = 99.0
    table.assign(rows)
    np.testing.assert_array_equal(array(tied(IDS)), before)


def test_gradient_of_the_table_is_the_sum_of_both_paths():
    tied, own = language_model(tied=True), language_model(tied=False)
    values = {k: array(v) for k, v in by_path(tied).items()}
    for path, variable in by_path(own).items():
        if path == "head/unembed/kernel":
            variable.assign(values["tokens/embeddings"][:VOCABULARY].T)
        else:
            variable.assign(values[path.replace("head/unembed/bias", "head/bias")])
    np.testing.assert_allclose(array(own(IDS)), array(tied(IDS)), atol=1e-5)

    gradients = {}
    for model in (tied, own):

        def loss(ids, weight, model=model):
            return ops.sum(weight * model(ids) ** 2)

        variables = model.trainable_variables
        _, values = ValueAndGradients(loss, variables)(IDS, tensor(2, 3, VOCABULARY))
        gradients[model] = dict(zip((v.path for v in variables), values, strict=True))
    expected = gradients[own]["tokens/embeddings"].copy()
    expected[:VOCABULARY] += gradients[own]["head/unembed/kernel"].T
    np.testing.assert_allclose(gradients[tied]["tokens/embeddings"], expected, rtol=1e-4, atol=1e-4)
    # Both paths take part, or the sum would prove nothing.
    assert np.abs(gradients[own]["tokens/embeddings"]).max() > 1e-2


def test_still_tied_after_reload(tmp_path):
    model = language_model(tied=True)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert [v.path for v in loaded.variables] == [v.path for v in model.variables]
    np.testing.assert_allclose(array(loaded(IDS)), array(model(IDS)), atol=1e-6)
    assert loaded.get_layer("head").tied_to is loaded.get_layer("tokens")
    by_path(loaded)["tokens/embeddings"].assign(np.zeros((ROWS, LATENT)))
    expected = np.broadcast_to(array(by_path(loaded)["head/bias"]), (2, 3, VOCABULARY))
    np.testing.assert_array_equal(array(loaded(IDS)), expected)


def test_tied_to_an_encoder(tmp_path):
    ids = keras.Input((None,), dtype="int32")
    encoder = GaussianTable(ROWS, LATENT, name="encoder")
    logits = layers.TiedUnembedding(VOCABULARY, tied_to=encoder, name="head")(encoder(ids))
    model = randomise(keras.Model(ids, logits))
    trainable = sorted(v.path for v in model.trainable_variables)
    assert trainable == ["head/bias", "head/proj/bias", "head/proj/kernel"]
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(array(loaded(IDS)), array(model(IDS)), atol=1e-6)
    loaded.get_layer("encoder").token_embedding.embeddings.assign(np.zeros((ROWS, LATENT)))
    assert len(np.unique(array(loaded(IDS)), axis=1)[0]) == 1


def test_tied_logits_are_float32_in_mixed_precision():
    exact, mixed = language_model(tied=True), language_model(tied=True, dtype="mixed_bfloat16")
    logits, expected = mixed(IDS), array(exact(IDS))
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"
    assert np.abs(array(logits) - expected).max() < 0.02 * np.abs(expected).max()


@pytest.mark.parametrize(
    ("tied_to", "vocabulary_size", "embedding_dim", "message"),
    [
        (keras.layers.Embedding(11, 6), 11, 5, "width embedding_dim.*11 x 6"),
        (keras.layers.Embedding(10, 6), 11, None, "at least vocabulary_size.*10 x 6"),
        (GaussianTable(10, 6), 11, None, "at least vocabulary_size.*10 x 6"),
        (keras.layers.Dense(6), 11, None, "Embedding layer or an encoder"),
        ("tokens", 11, None, "Embedding layer or an encoder.*'tokens'"),
        (None, 0, None, "vocabulary_size"),
        (None, 11, -1, "embedding_dim"),
    ],
)
def test_what_cannot_be_tied_is_refused(tied_to, vocabulary_size, embedding_dim, message):
    with pytest.raises(ValueError, match=message):
        layers.TiedUnembedding(vocabulary_size, embedding_dim, tied_to=tied_to)


@pytest.mark.parametrize("tied", [False, True])
def test_most_likely_ids_by_blocks_of_positions(tied, monkeypatch):
    table = keras.layers.Embedding(ROWS, LATENT) if tied else None
    layer = layers.TiedUnembedding(VOCABULARY, LATENT, tied_to=table)
    layer.build((None, None, WIDTH))
    randomise(layer)
    x = tensor(2, 7, WIDTH)
    whole = array(ops.argmax(layer(x), axis=-1))
    held = []
    call = layer.call
    monkeypatch.setattr(layer, "call", lambda x: held.append(x.shape[1]) or call(x))
    # Two rows: all seven positions, three blocks of three, seven of one.
    for most, size in ((2**26, 7), (2 * VOCABULARY * 3, 3), (1, 1)):
        monkeypatch.setattr(tied_unembedding, "MAX_LOGITS", most)
        held.clear()
        np.testing.assert_array_equal(array(layer.most_likely(x)), whole)
        assert set(held) == {size}
    assert len(set(whole.ravel().tolist())) > 2
