"""The encoder trained from scratch: its interface, its objective, its freezing."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_elf.encoders import GaussianTable, MaskedTokenModel, TransformerEncoder, pretrain
from tests.models import small

IDS = np.array([[1, 4, 2, 5], [0, 6, 6, 3]], "int32")


def as_numpy(x):
    return np.array(ops.convert_to_numpy(x))


def made(**kwargs):
    keras.utils.set_random_seed(0)
    encoder = TransformerEncoder(7, 8, **{"depth": 1, "num_heads": 2, **kwargs})
    # As built, rows of the table are small and attention sees little.
    encoder.token_embedding.embeddings.assign(
        np.random.default_rng(1).standard_normal((8, 8)).astype("float32")
    )
    return encoder


@pytest.fixture(scope="module")
def encoder():
    return made()


def test_mask_token_lies_outside_the_vocabulary(encoder):
    assert encoder.mask_token_id == 7
    assert encoder.token_embedding.input_dim == 8


def test_freezing():
    encoder = made()
    assert len(encoder.trainable_variables) == len(encoder.variables) > 5
    encoder.freeze()
    assert encoder.trainable_variables == [] and encoder.frozen
    assert TransformerEncoder(7, 8, num_heads=2, trainable=False).frozen


def test_config_and_file_round_trip(tmp_path):
    encoder = made(name="mine")
    encoder.freeze()
    again = TransformerEncoder.from_config(encoder.get_config())
    assert again.get_config() == encoder.get_config() and again.frozen
    ids = keras.Input((None,), dtype="int32")
    model = keras.Model(ids, encoder(ids))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.trainable_variables == []
    np.testing.assert_allclose(as_numpy(loaded(IDS)), as_numpy(encoder(IDS)), atol=1e-6)


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(num_heads=3), "`num_heads` must divide"),
        (dict(num_heads=8), "must be even for rotary pairs"),
        (dict(depth=0), "`depth` must be a whole number >= 1. Received: 0"),
    ],
)
def test_refused_arguments(change, message):
    with pytest.raises(ValueError, match=message):
        TransformerEncoder(7, 8, **{"num_heads": 2, **change})


def test_masking_of_the_objective():
    """What is predicted is a valid share of the tokens, and most of it is hidden."""
    keras.utils.set_random_seed(0)
    encoder = small.encoder()
    model = MaskedTokenModel(encoder, mask_probability=0.5, seed=0)
    seen = []
    encode = encoder.encode
    object.__setattr__(encoder, "encode", lambda ids, mask: seen.append(ids) or encode(ids, mask))
    rng = np.random.default_rng(0)
    ids = rng.integers(0, small.VOCABULARY_SIZE, (64, 16)).astype("int32")
    valid = np.arange(16) < np.full((64, 16), 12)
    out = model({"token_ids": ids, "is_valid": valid}, training=True)
    chosen, seen = as_numpy(out["chosen"]), as_numpy(seen[0])
    assert not chosen[~valid].any() and abs(chosen[valid].mean() - 0.5) < 0.06
    np.testing.assert_array_equal(seen[~chosen], ids[~chosen])
    assert abs((seen[chosen] == encoder.mask_token_id).mean() - 0.8) < 0.07
    assert abs((seen[chosen] == ids[chosen]).mean() - 0.1) < 0.06
    assert tuple(out["logits"].shape) == (64, 16, small.VOCABULARY_SIZE)


@pytest.mark.slow
def test_pretraining_learns_and_freezes():
    keras.utils.set_random_seed(0)
    encoder = TransformerEncoder(small.VOCABULARY_SIZE, 16, depth=1, num_heads=2)
    rows = small.rows(96)
    before = as_numpy(encoder(rows["token_ids"][:2]))
    report = pretrain(encoder, rows, epochs=12, batch_size=24, verbose=0)
    assert set(report) == {"loss", "latent_mean", "latent_std"} and len(report["loss"]) == 12
    # A uniform guess costs log(200) = 5.3 nats.
    assert report["loss"][0] > 5.0 and report["loss"][-1] < 4.7
    assert encoder.frozen and not encoder.trainable_variables
    latents = as_numpy(encoder(rows["token_ids"], rows["is_valid"]))
    assert np.abs(latents[:2] - before).max() > 1e-2
    valid = latents[rows["is_valid"]]
    np.testing.assert_allclose(report["latent_std"], valid.std(), rtol=1e-3)
    np.testing.assert_allclose(report["latent_mean"], valid.mean(), atol=1e-4)


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(encoder=GaussianTable(200, 4)), "`encoder` must be one that can be trained"),
        (dict(epochs=0), "`epochs` must be a whole number >= 1. Received: 0"),
        (dict(batch_size=7), r"fewer rows \(6\) than one batch holds"),
        (dict(mask_probability=0), "`mask_probability` must be"),
        (dict(mask_probability=1.5), "`mask_probability` must be"),
        (dict(token_ids=np.full((6, 12), 200)), r"\[0, 200\).*200"),
    ],
)
def test_refused_by_pretrain(change, message):
    rows = small.rows(6)
    encoder = small.encoder()
    encoder.unfreeze()
    arguments = {"encoder": encoder, "batch_size": 6, **change}
    if "token_ids" in arguments:
        rows["token_ids"] = arguments.pop("token_ids")
    with pytest.raises(ValueError, match=message):
        pretrain(rows=rows, verbose=0, **arguments)
