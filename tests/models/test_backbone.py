"""The backbone: sizes, graph and method alike, heads, dtype, configuration."""

import contextlib
import json

import keras
import numpy as np
import pytest
from keras import ops
from keras.src.backend.common import global_state

from keras_elf.models import ARCHITECTURES, ELFBackbone, architecture
from tests.models import small

PARAMETERS = {"elf_b": 104_579_940, "elf_m": 342_540_036, "elf_l": 652_103_332}


def inputs(rows=2, length=5, seed=0):
    rng = np.random.default_rng(seed)
    z, previous = rng.standard_normal((2, rows, length, small.LATENT_DIM)).astype("float32")
    return {
        "z": z,
        "self_condition": previous,
        "t": np.linspace(0.1, 0.9, rows).astype("float32"),
        "guidance_scale": np.linspace(1, 4, rows).astype("float32"),
        "decode": np.float32(np.arange(rows) % 2),
    }


def as_numpy(x):
    return np.array(ops.convert_to_numpy(x))


@pytest.fixture(scope="module")
def backbone():
    keras.utils.set_random_seed(0)
    return small.backbone()


@contextlib.contextmanager
def valueless():
    """Within the block, variables have shapes and no values."""
    try:
        with keras.StatelessScope(initialize_variables=False):
            yield
    finally:
        # Keras would give them their values at the end of the next scope.
        global_state.set_global_attribute("uninitialized_variables", [])


@pytest.mark.parametrize("name", PARAMETERS)
def test_published_sizes(name):
    """Counted where no variable gets a value: the largest would need 2.6 GB."""
    with valueless():
        assert ELFBackbone.from_architecture(name).count_params() == PARAMETERS[name]
    assert set(ARCHITECTURES) == set(PARAMETERS)
    assert architecture(name)["latent_dim"] == 512


def test_architecture_overrides():
    with valueless():
        backbone = ELFBackbone.from_architecture("elf_b", depth=1, hidden_size=24, latent_dim=8)
    assert (backbone.num_heads, backbone.vocabulary_size) == (12, 32100)
    assert (backbone.depth, backbone.hidden_size, backbone.latent_dim) == (1, 24, 8)


def test_graph_and_method_agree(backbone):
    x = inputs()
    hidden = as_numpy(backbone(x))
    assert hidden.shape == (2, 5, 16)
    np.testing.assert_allclose(as_numpy(backbone.hidden_states(**x)), hidden, atol=1e-5)


@pytest.mark.parametrize("name", ["z", "self_condition", "t", "guidance_scale", "decode"])
def test_every_input_reaches_the_output_of_its_own_row(backbone, name):
    x = inputs()
    changed = {**x, name: x[name].copy()}
    # A gate of 1.5 would be one of 1 to the blocks' norms: off is what differs from on.
    changed[name][1] += -1.0 if name == "decode" else 0.5
    difference = np.abs(as_numpy(backbone(changed)) - as_numpy(backbone(x)))
    assert difference[1].max() > 1e-4
    assert difference[0].max() < 1e-6


def test_parts_may_be_left_out(backbone):
    z = inputs()["z"]
    hidden = as_numpy(backbone.hidden_states(z, 0.5))
    assert hidden.shape == (2, 5, 16) and np.isfinite(hidden).all()
    # Left out is not the same as zeros: the joining Dense has a bias, the scale has tokens.
    joined = as_numpy(backbone.hidden_states(z, 0.5, np.zeros_like(z)))
    assert np.abs(joined - hidden).max() > 1e-3
    guided = as_numpy(backbone.hidden_states(z, 0.5, guidance_scale=0.0))
    assert np.abs(guided - hidden).max() > 1e-3


def test_heads(backbone):
    hidden = backbone(inputs())
    x_pred, logits = backbone.denoising_head(hidden), backbone.unembedding(hidden)
    assert tuple(x_pred.shape) == (2, 5, 16) and tuple(logits.shape) == (2, 5, 200)
    assert not as_numpy(x_pred).any()  # as built, the denoising head gives zeros
    assert len(backbone.trainable_variables) == len(backbone.variables)


@pytest.mark.slow
def test_mixed_bfloat16_keeps_stream_and_heads_in_float32():
    keras.utils.set_random_seed(0)
    plain = small.enliven_backbone(small.backbone())
    mixed = small.backbone(dtype="mixed_bfloat16")
    mixed.set_weights(plain.get_weights())
    assert all(v.dtype == "float32" for v in mixed.variables)
    hidden = mixed(inputs())
    assert keras.backend.standardize_dtype(hidden.dtype) == "float32"
    for head in ("denoising_head", "unembedding"):
        out = getattr(mixed, head)(hidden)
        assert keras.backend.standardize_dtype(out.dtype) == "float32"
        want = as_numpy(getattr(plain, head)(plain(inputs())))
        assert 0 < np.abs(as_numpy(out) - want).max() < 0.1 * np.abs(want).max()


@pytest.mark.parametrize("name", ["dropout", "attention_dropout"])
def test_dropout_without_a_middle_half_is_told_to_do_nothing(name):
    with pytest.warns(UserWarning, match="with depth=3 there are none"):
        small.backbone(depth=3, **{name: 0.1})


def test_dropout_is_in_the_middle_half():
    backbone = small.backbone(depth=8, dropout=0.5, attention_dropout=0.25)
    assert [block.attn.dropout for block in backbone.blocks] == [0, 0, 0.5, 0.5, 0.5, 0.5, 0, 0]
    assert [block.attn.attention_dropout for block in backbone.blocks] == [0, 0, *4 * [0.25], 0, 0]


def test_without_guidance_tokens():
    backbone = small.backbone(num_guidance_tokens=0)
    x = inputs()
    del x["guidance_scale"]
    assert "guidance_scale" not in backbone.input
    np.testing.assert_allclose(
        as_numpy(backbone(x)), as_numpy(backbone.hidden_states(**x)), atol=1e-5
    )


def test_tied_unembedding_is_the_table():
    encoder = small.encoder("learned")
    backbone = small.backbone(tied_to=encoder)
    table = encoder.token_embedding.embeddings
    assert sum(v is table for v in backbone.variables) == 1
    hidden = backbone(inputs())
    unembedding = backbone.unembedding
    want = as_numpy(unembedding.embed(hidden)) @ as_numpy(table).T + as_numpy(unembedding.bias)
    np.testing.assert_allclose(as_numpy(unembedding(hidden)), want, atol=1e-5)
    assert backbone.count_params() == small.backbone().count_params()


def test_config_round_trip(backbone):
    config = keras.saving.serialize_keras_object(
        small.backbone(dropout=0.1, mlp_ratio=2, name="my")
    )
    assert config["registered_name"] == "keras_elf>ELFBackbone"
    json.dumps(config)
    again = keras.saving.deserialize_keras_object(config)
    assert again.get_config() == config["config"] | {"dtype": again.get_config()["dtype"]}
    assert (again.name, again.dropout, again.mlp_ratio) == ("my", 0.1, 2)
