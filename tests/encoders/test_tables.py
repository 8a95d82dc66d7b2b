import keras
import numpy as np
import pytest
from keras import ops

from keras_elf.encoders.tables import GaussianTable, LearnedTable
from keras_elf.encoders.text_encoder import TextEncoder

IDS = np.array([[1, 4, 2], [0, 6, 6]], "int32")


def as_numpy(x):
    return ops.convert_to_numpy(x)


def functional(encoder):
    ids = keras.Input((None,), dtype="int32")
    mask = keras.Input((None, None), dtype="bool")
    return keras.Model([ids, mask], encoder(ids, mask))


@keras.saving.register_keras_serializable(package="keras_elf_tests")
class Leaky(TextEncoder):
    """Shows what a subclass is given: mask, inference mode of sublayers that do not ask."""

    def __init__(self, **kwargs):
        super().__init__(7, 1, **kwargs)
        self.dropout = keras.layers.Dropout(0.5)
        self.scale = self.add_weight(name="scale", shape=(), initializer="ones")
        self.seal()

    def encode(self, token_ids, attention_mask):
        assert attention_mask.shape[1:] == (token_ids.shape[1],) * 2
        seen = ops.cast(attention_mask, "float32") @ ops.ones((token_ids.shape[1], 1))
        return self.dropout(seen) * self.scale


def test_a_latent_is_its_row_whatever_the_mask():
    encoder = GaussianTable(7, 4, seed=3)
    table = as_numpy(encoder.token_embedding.embeddings)
    assert encoder.vocabulary_size, encoder.latent_dim == (7, 4)
    for mask in (None, np.zeros((2, 3), "bool"), np.ones((2, 3, 3), "float32")):
        latents = encoder(IDS, mask)
        assert keras.backend.standardize_dtype(latents.dtype) == "float32"
        np.testing.assert_array_equal(as_numpy(latents), table[IDS])


def test_the_draw_depends_on_the_seed_alone():
    first, second, other = (
        as_numpy(GaussianTable(500, 64, seed=seed).token_embedding.embeddings) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, second)
    assert abs(first - other).max() > 0.1
    # Literal values, so that every backend must draw these very numbers.
    np.testing.assert_allclose(first[0, :3], [0.35772571, 0.08730197, 0.01929949], rtol=1e-6)
    assert abs(first.std() - 0.2) < 0.005 and abs(first.mean()) < 0.005


@pytest.mark.parametrize("cls, trainable", [(GaussianTable, 0), (LearnedTable, 1)])
def test_freezing_survives_saving_and_a_trainable_model(cls, trainable, tmp_path):
    encoder = cls(7, 4, seed=3)
    assert len(encoder.trainable_variables) == trainable
    encoder.freeze()
    assert encoder.frozen and encoder.trainable_variables == []
    model = functional(encoder)
    model.trainable = True
    assert model.trainable_variables == []
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.trainable_variables == [] and len(loaded.variables) == 1
    assert not any(variable.trainable for variable in loaded.variables)
    encoder.unfreeze()
    assert len(model.trainable_variables) == 1 and not encoder.frozen


@pytest.mark.parametrize("cls", [GaussianTable, LearnedTable])
def test_config_and_file_round_trip(cls, tmp_path):
    encoder = cls(7, 4, stddev=0.5, seed=9, name="table", dtype="float32")
    config = encoder.get_config()
    twin = cls.from_config(config)
    assert twin.get_config() == config and twin.trainable == encoder.trainable
    np.testing.assert_array_equal(as_numpy(twin(IDS)), as_numpy(encoder(IDS)))

    encoder.token_embedding.embeddings.assign(np.arange(28.0).reshape(7, 4))
    model = functional(encoder)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    inputs = [IDS, np.ones((2, 3, 3), "bool")]
    np.testing.assert_array_equal(
        loaded.predict(inputs, verbose=0), model.predict(inputs, verbose=0)
    )
    assert len(loaded.trainable_variables) == len(model.trainable_variables)


@pytest.mark.parametrize("cls", [GaussianTable, LearnedTable])
def test_only_a_learned_table_gets_the_gradient(cls):
    encoder = cls(7, 4)
    ids = keras.Input((None,), dtype="int32")
    model = keras.Model(ids, keras.layers.Dense(1)(encoder(ids)))
    model.compile(optimizer="sgd", loss="mse")
    before = as_numpy(encoder.token_embedding.embeddings).copy()
    model.fit(IDS, np.ones((2, 3, 1), "float32"), verbose=0)
    moved = abs(as_numpy(encoder.token_embedding.embeddings) - before).max(-1) > 0
    expected = np.isin(np.arange(7), IDS) if cls is LearnedTable else np.zeros(7, "bool")
    np.testing.assert_array_equal(moved, expected)


def test_the_global_policy_does_not_coarsen_the_latents():
    exact = as_numpy(LearnedTable(7, 4)(IDS))
    keras.config.set_dtype_policy("mixed_bfloat16")
    np.testing.assert_array_equal(as_numpy(LearnedTable(7, 4)(IDS)), exact)


def test_subclasses_get_a_full_bool_mask_and_inference_mode():
    encoder = Leaky()
    columns = np.array([[1, 1, 0], [1, 0, 0]], "float32")
    for training in (None, True):
        latents = as_numpy(encoder(IDS, columns, training=training))[..., 0]
        np.testing.assert_array_equal(latents, [[2, 2, 2], [1, 1, 1]])
    np.testing.assert_array_equal(as_numpy(encoder(IDS))[..., 0], np.full((2, 3), 3))


def test_layers_after_the_encoder_keep_their_training_mode():
    class Outer(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.encoder, self.dropout = Leaky(), keras.layers.Dropout(0.99)

        def call(self, ids):
            return self.dropout(self.encoder(ids))

    outer, ids = Outer(), np.zeros((4, 16), "int32")
    assert (as_numpy(outer(ids, training=True)) == 0).any()
    assert (as_numpy(outer(ids, training=False)) == 16).all()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"vocabulary_size": 0}, "`vocabulary_size` must be"),
        ({"latent_dim": 2.5}, "`latent_dim` must be"),
        ({"stddev": -1}, "`stddev` must be"),
        ({"seed": -1}, "`seed` must be"),
        ({"colour": 1}, "colour"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        GaussianTable(**{"vocabulary_size": 7, "latent_dim": 4, **arguments})


def test_wrong_inputs_are_named():
    encoder = GaussianTable(7, 4)
    with pytest.raises(ValueError, match="`token_ids` must have shape"):
        encoder(IDS[0])
    with pytest.raises(ValueError, match="`token_ids` must be integers"):
        encoder(IDS.astype("float32"))
    for shape in ((3,), (2, 4), (2, 3, 4), (2, 1, 3, 3)):
        with pytest.raises(ValueError, match="`attention_mask` must have shape"):
            encoder(IDS, np.ones(shape, "bool"))
    with pytest.raises(ValueError, match="`token_ids` must have shape"):
        encoder(keras.Input((3, 2), dtype="int32"))
