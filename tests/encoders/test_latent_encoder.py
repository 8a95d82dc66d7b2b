"""Standardised latents, label drop, and what padding and condition may touch."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_elf.encoders import GaussianTable, LatentEncoder, TransformerEncoder, latent_statistics

IDS = np.random.default_rng(0).integers(0, 30, (6, 8)).astype("int32")
COND = np.arange(8) < np.full((6, 8), 3)
VALID = np.ones((6, 8), "bool")


def as_numpy(x):
    return np.array(ops.convert_to_numpy(x))


@pytest.fixture(scope="module")
def encoder():
    keras.utils.set_random_seed(0)
    made = TransformerEncoder(30, 8, depth=1, num_heads=2)
    made.token_embedding.embeddings.assign(
        np.random.default_rng(1).standard_normal((31, 8)).astype("float32")
    )
    made.freeze()
    return made


def encode(layer, ids=IDS, is_cond=COND, is_valid=VALID, dropped=None):
    dropped = None if dropped is None else ops.convert_to_tensor(dropped)
    return as_numpy(layer.encode(ops.convert_to_tensor(ids), is_cond, is_valid, dropped))


def test_standardisation():
    table = GaussianTable(30, 8, stddev=0.5)
    layer = LatentEncoder(table, latent_mean=0.1, latent_std=0.25)
    want = (as_numpy(table.token_embedding.embeddings)[IDS] - 0.1) / 0.25
    np.testing.assert_allclose(encode(layer), want, rtol=1e-5)


def test_statistics_standardise(encoder):
    valid = np.tile(np.arange(8) < np.arange(3, 9)[:, None], (2, 1))
    ids = np.where(valid, np.concatenate([IDS, 29 - IDS]), 0)
    mean, std = latent_statistics(encoder, {"token_ids": ids, "is_valid": valid}, batch_size=6)
    layer = LatentEncoder(encoder, latent_mean=mean, latent_std=std)
    halves = (slice(0, 6), slice(6, 12))
    latents = np.concatenate(
        [encode(layer, ids[h], np.zeros((6, 8), "bool"), valid[h])[valid[h]] for h in halves]
    )
    assert abs(latents.mean()) < 1e-4 and abs(latents.std() - 1) < 1e-4


def test_padding_and_neighbours_change_nothing(encoder):
    """The same text alone, in a longer row, and beside others."""
    layer = LatentEncoder(encoder)
    valid = np.arange(8) < np.array([[5], [8], [2], [5], [6], [7]])
    together = encode(layer, IDS, COND & valid, valid)
    alone = encode(layer, IDS[:1, :5], COND[:1, :5], valid[:1, :5])
    np.testing.assert_allclose(together[0, :5], alone[0], atol=1e-5)
    other_padding = np.where(valid, IDS, 29 - IDS)
    np.testing.assert_allclose(
        encode(layer, other_padding, COND & valid, valid)[valid], together[valid], atol=1e-5
    )


def test_condition_is_encoded_without_its_target(encoder):
    layer = LatentEncoder(encoder)
    before = encode(layer)
    changed = np.where(COND, IDS, 29 - IDS)
    np.testing.assert_allclose(encode(layer, changed)[COND], before[COND], atol=1e-5)
    # The target does see its condition.
    changed = np.where(COND, 29 - IDS, IDS)
    assert np.abs(encode(layer, changed) - before)[~COND].max() > 1e-3


def test_dropped_rows_know_nothing_of_their_condition(encoder):
    layer = LatentEncoder(encoder)
    dropped = np.array([True, False] * 3)
    before = encode(layer, dropped=dropped)
    assert not before[dropped][:, :3].any() and before[~dropped][:, :3].any()
    after = encode(layer, np.where(COND, 29 - IDS, IDS), dropped=dropped)
    np.testing.assert_allclose(after[dropped], before[dropped], atol=1e-6)
    assert np.abs(after - before)[~dropped].max() > 1e-3
    np.testing.assert_allclose(encode(layer)[~dropped], before[~dropped], atol=1e-6)


def test_label_drop_is_drawn_in_training_alone():
    layer = LatentEncoder(GaussianTable(30, 8), label_drop_probability=0.3, seed=4)
    ids = np.tile(IDS, (50, 1))
    cond, valid = np.tile(COND, (50, 1)), np.ones((300, 8), "bool")

    def call(**kwargs):
        out = layer(ids, cond, valid, **kwargs)
        return as_numpy(out["clean"]), as_numpy(out["dropped"])

    for kwargs in ({}, {"training": False}):
        clean, dropped = call(**kwargs)
        assert not dropped.any() and clean.any(axis=-1).all()
    draws = []
    for _ in range(2):
        clean, dropped = call(training=True)
        assert 0.2 < dropped.mean() < 0.4
        np.testing.assert_array_equal(~clean[:, :3].any(axis=(1, 2)), dropped)
        draws.append(dropped)
    assert (draws[0] != draws[1]).any()


def test_without_label_drop_no_seed_moves():
    layer = LatentEncoder(GaussianTable(30, 8), seed=4)
    before = as_numpy(layer.seed_generator.state)
    assert not as_numpy(layer(IDS, COND, VALID, training=True)["dropped"]).any()
    np.testing.assert_array_equal(as_numpy(layer.seed_generator.state), before)


def test_symbolic_shapes(encoder):
    ids = keras.Input((None,), dtype="int32")
    masks = [keras.Input((None,), dtype="bool") for _ in range(2)]
    out = LatentEncoder(encoder)(ids, *masks)
    assert out["clean"].shape == (None, None, 8) and out["clean"].dtype == "float32"
    assert out["dropped"].shape == (None,) and out["dropped"].dtype == "bool"
