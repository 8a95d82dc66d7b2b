import gc
import json
import pathlib
import shutil
import subprocess
import sys
import weakref

import keras
import numpy as np
import pytest
import safetensors.numpy

from keras_elf.encoders.t5_encoder import T5Encoder
from keras_elf.encoders.t5_weights import assign_weights, weight_map

pytestmark = pytest.mark.without_tensorflow

FIXTURES = pathlib.Path(__file__).parents[1] / "reference" / "t5"
VERSIONS = ["t5_v1_0", "t5_v1_1"]
TINY = {
    "vocabulary_size": 11,
    "num_layers": 2,
    "num_heads": 2,
    "latent_dim": 8,
    "intermediate_dim": 12,
}
IDS = np.array([[3, 7, 1, 9, 2, 5], [4, 4, 8, 1, 0, 0]], "int32")


def as_numpy(x):
    return keras.ops.convert_to_numpy(x)


def functional(encoder):
    ids = keras.Input((None,), dtype="int32")
    mask = keras.Input((None, None), dtype="bool")
    return keras.Model([ids, mask], encoder(ids, mask))


@pytest.fixture(scope="module")
def encoders():
    return {v: T5Encoder.from_transformers(FIXTURES / f"{v}_hf") for v in VERSIONS}


@pytest.fixture(scope="module")
def encode(encoders):
    """`encode(version, ids, mask)`, compiled once for each shape: eager JAX is slow."""
    models = {version: functional(encoder) for version, encoder in encoders.items()}
    for model in models.values():
        model.compile(jit_compile="auto" if keras.backend.backend() == "torch" else True)

    def run(version, ids, mask):
        inputs = [ids.astype("int32"), np.asarray(mask, "bool")]
        return models[version].predict(inputs, verbose=0)

    return run


@pytest.fixture(scope="module")
def tiny():
    keras.utils.set_random_seed(0)
    return T5Encoder(**TINY)


@pytest.mark.parametrize("version", VERSIONS)
def test_equals_transformers(encode, reference, version):
    case = reference(f"t5/{version}")
    np.testing.assert_allclose(
        encode(version, case["ids"], case["mask3"]), case["out_mask3"], atol=2e-5
    )


def test_takes_column_masks_and_none_eagerly(encoders, encode, reference):
    case, encoder = reference("t5/t5_v1_0"), encoders["t5_v1_0"]
    latents = encoder(case["ids"], case["mask2"])
    assert keras.backend.standardize_dtype(latents.dtype) == "float32"
    np.testing.assert_allclose(as_numpy(latents), case["out_mask2"], atol=2e-5)
    everything = encode("t5_v1_0", case["ids"], np.ones_like(case["mask3"]))
    np.testing.assert_allclose(as_numpy(encoder(case["ids"])), everything, atol=2e-5)


def test_the_gelu_of_version_1_1_is_the_tanh_form(encoders, reference):
    case, encoder = reference("t5/t5_v1_1"), encoders["t5_v1_1"]
    assert encoder.activation == "gelu" and encoder.use_gated_activation
    exact = T5Encoder.from_config({**encoder.get_config(), "activation": "gelu_exact"})
    for source, target in zip(encoder.variables, exact.variables, strict=True):
        target.assign(as_numpy(source))
    latents = functional(exact).predict([case["ids"].astype("int32"), case["mask3"] > 0], verbose=0)
    assert abs(latents - case["out_mask3"]).max() > 1e-4


def test_a_model_around_a_pretrained_encoder_cannot_train_it(encoders):
    model = functional(encoders["t5_v1_0"])
    model.trainable = True
    assert encoders["t5_v1_0"].frozen and model.trainable_variables == []


def test_packed_padded_and_batched_tokens_get_the_latents_they_get_alone(encode, reference):
    ids = reference("t5/t5_v1_1")["ids"]
    alone = encode("t5_v1_1", ids[:1, :12], np.ones((1, 12, 12)))[0]
    # Row 0: the same document first of three in a packed row; row 1: padded; row 2: last.
    rows = np.stack([ids[0], np.where(np.arange(40) < 12, ids[0], 0), np.roll(ids[0], -12)])
    segments = np.zeros((3, 40), "int32")
    segments[0, 12:], segments[0, 30:], segments[1, 12:], segments[2, 28:] = 1, 2, 1, 1
    together = encode("t5_v1_1", rows, segments[:, :, None] == segments[:, None, :])
    for latents in (together[0, :12], together[1, :12], together[2, 28:]):
        np.testing.assert_allclose(latents, alone, atol=2e-5)
    unmasked = encode("t5_v1_1", rows, np.ones((3, 40, 40)))
    assert abs(unmasked[0, :12] - alone).max() > 1e-2


@pytest.mark.parametrize("dtype", [None, "bfloat16"])
def test_stays_finite_under_any_policy_even_where_nothing_is_visible(dtype, reference):
    keras.config.set_dtype_policy("mixed_float16")
    case = reference("t5/t5_v1_0")
    encoder = T5Encoder.from_transformers(FIXTURES / "t5_v1_0_hf", dtype=dtype)
    assert encoder.compute_dtype == ("float32" if dtype is None else "bfloat16")
    mask = case["mask3"] > 0
    mask[0], mask[1, 3] = False, False
    latents = functional(encoder).predict([case["ids"].astype("int32"), mask], verbose=0)
    assert latents.dtype == "float32" and np.isfinite(latents).all()
    atol = 2e-5 if dtype is None else 0.2
    np.testing.assert_allclose(latents[2], case["out_mask3"][2], atol=atol)


@pytest.mark.parametrize("dtype", ["float16", "mixed_float16", "float64"])
def test_float16_is_refused(dtype):
    with pytest.raises(ValueError, match="float16 its attention mask overflows"):
        T5Encoder(**TINY, dtype=dtype)


def test_a_preset_is_taken_over_without_its_decoder(tmp_path):
    import keras_hub

    keras.utils.set_random_seed(1)
    tanh_gelu = keras.saving.get_registered_object("keras_hub>gelu_approximate")
    config = dict(TINY, hidden_dim=8, num_layers=1, activation=tanh_gelu)
    config.pop("latent_dim")
    backbone = keras_hub.models.T5Backbone(**config, tie_embedding_weights=False, dropout=0.9)
    backbone.save_to_preset(str(tmp_path / "preset"))
    padding = np.ones_like(IDS)
    expected = backbone.predict(
        {
            "encoder_token_ids": IDS,
            "encoder_padding_mask": padding,
            "decoder_token_ids": IDS,
            "decoder_padding_mask": padding,
        },
        verbose=0,
    )["encoder_sequence_output"]
    encoder = T5Encoder.from_preset(str(tmp_path / "preset"))
    assert encoder.frozen and encoder.activation == "gelu" and encoder.use_gated_activation
    assert len(encoder.variables) == 9 + 3
    model = functional(encoder)
    model.save(tmp_path / "model.keras")
    inputs = [IDS, np.ones((2, 6, 6), "bool")]
    np.testing.assert_allclose(model.predict(inputs, verbose=0), expected, atol=1e-5)
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded.predict(inputs, verbose=0), expected, atol=1e-5)


def test_dropout_never_acts_and_the_decoder_is_freed():
    import keras_hub

    config = dict(TINY, hidden_dim=8, use_gated_activation=False, dropout=0.9)
    config.pop("latent_dim")
    backbone = keras_hub.models.T5Backbone(**config)
    with pytest.raises(ValueError, match=r"intermediate_dim 13 != 12"):
        T5Encoder(**{**TINY, "intermediate_dim": 13}, backbone=backbone)
    decoder = weakref.ref(backbone.decoder_transformer_layers[0])
    encoder = T5Encoder(**TINY, backbone=backbone)
    del backbone
    gc.collect()
    assert decoder() is None
    model, inputs = functional(encoder), [IDS, np.ones((2, 6, 6), "bool")]
    calm, trained = (as_numpy(model(inputs, training=training)) for training in (False, True))
    np.testing.assert_array_equal(trained, calm)


def test_config_and_file_round_trip(tiny, tmp_path):
    twin = T5Encoder.from_config(tiny.get_config())
    assert twin.get_config() == tiny.get_config() and not twin.frozen
    assert [v.shape for v in twin.variables] == [v.shape for v in tiny.variables]
    twin.freeze()
    model = functional(twin)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.trainable_variables == []
    assert not any(variable.trainable for variable in loaded.variables)
    inputs = [IDS, np.ones((2, 6, 6), "bool")]
    np.testing.assert_allclose(
        loaded.predict(inputs, verbose=0), model.predict(inputs, verbose=0), atol=1e-6
    )
    loaded.layers[-1].unfreeze()
    assert len(loaded.trainable_variables) == len(twin.variables)


def test_decoder_arrays_are_ignored_and_others_must_fit(tiny):
    good = {
        key: as_numpy(variable).T if transposed else as_numpy(variable)
        for key, (variable, transposed) in weight_map(tiny).items()
    }
    extra = {"decoder.block.0.layer_norm.weight": np.ones(3), "lm_head.weight": np.ones(3)}
    table = good["shared.weight"] + 1
    alias = {k: v for k, v in good.items() if k != "shared.weight"}
    assign_weights(tiny, {**alias, **extra, "encoder.embed_tokens.weight": table})
    np.testing.assert_array_equal(as_numpy(tiny.token_embedding.embeddings), table)

    bad = {**good, "encoder.block.7.nonsense": np.ones(3)}
    bad["encoder.embed_tokens.weight"] = table
    bad["shared.weight"] = good["shared.weight"][:5]
    del bad["encoder.final_layer_norm.weight"]
    with pytest.raises(ValueError) as raised:
        assign_weights(tiny, bad)
    for part in (
        "1 missing: encoder.final_layer_norm.weight",
        "1 unknown: encoder.block.7.nonsense",
        "shared.weight is (5, 8), expected (11, 8)",
        "must be the same table",
    ):
        assert part in str(raised.value)
    np.testing.assert_array_equal(as_numpy(tiny.token_embedding.embeddings), table)


@pytest.fixture
def directory(tmp_path):
    return pathlib.Path(shutil.copytree(FIXTURES / "t5_v1_0_hf", tmp_path / "t5"))


def test_shards_and_bfloat16_are_read(directory, encoders):
    arrays = safetensors.numpy.load_file(directory / "model.safetensors")
    (directory / "model.safetensors").unlink()
    names = sorted(arrays)
    shards = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for shard, keys in shards.items():
        half = {k: keras.ops.convert_to_numpy(arrays[k]).astype("bfloat16") for k in keys}
        safetensors.numpy.save_file(half, directory / shard)
    index = {"weight_map": {k: shard for shard, keys in shards.items() for k in keys}}
    index["weight_map"]["decoder.final_layer_norm.weight"] = "not_downloaded.safetensors"
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))
    encoder = T5Encoder.from_transformers(directory)
    for got, wanted in zip(encoder.variables, encoders["t5_v1_0"].variables, strict=True):
        np.testing.assert_allclose(as_numpy(got), as_numpy(wanted), rtol=0.01)

    (directory / "b.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="no b.safetensors"):
        T5Encoder.from_transformers(directory)
    index["weight_map"][names[0]] = "../a.safetensors"
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match="outside its directory"):
        T5Encoder.from_transformers(directory)


def edit_config(directory, **changes):
    path = directory / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_damaged_directories_are_explained(directory):
    load = T5Encoder.from_transformers
    with pytest.raises(FileNotFoundError, match="no directory"):
        load(directory / "absent")
    with pytest.raises(ValueError, match="Use `T5Encoder.from_transformers`"):
        T5Encoder.from_preset(str(directory))
    weights = (directory / "model.safetensors").read_bytes()
    (directory / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(ValueError, match="model.safetensors is damaged"):
        load(directory)
    (directory / "model.safetensors").rename(directory / "pytorch_model.bin")
    with pytest.raises(ValueError, match="never opened here. Convert it to safetensors"):
        load(directory)
    (directory / "pytorch_model.bin").unlink()
    with pytest.raises(FileNotFoundError, match="neither model.safetensors nor"):
        load(directory)


def test_unfit_configs_are_explained(directory):
    load = T5Encoder.from_transformers
    edit_config(directory, vocab_size=62)
    with pytest.raises(ValueError, match=r"shared.weight is \(61, 32\), expected \(62, 32\)"):
        load(directory)
    edit_config(directory, dense_act_fn="swish")
    with pytest.raises(ValueError, match="activation must be one of .* Received: 'swish'"):
        load(directory)
    edit_config(directory, relative_attention_num_buckets=16)
    with pytest.raises(ValueError, match="only relative_attention_num_buckets = 32"):
        load(directory)
    edit_config(directory, model_type="bert")
    with pytest.raises(ValueError, match="model_type 't5'. Received: 'bert'"):
        load(directory)
    (directory / "config.json").write_text('{"model_type": "t5"')
    with pytest.raises(ValueError, match="config.json is not readable JSON"):
        load(directory)
    (directory / "config.json").write_text('{"model_type": "t5"}')
    with pytest.raises(ValueError, match="lacks .*'d_ff'"):
        load(directory)
    (directory / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match="no config.json"):
        load(directory)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"num_layers": 0}, "`num_layers` must be"),
        ({"activation": "gleu"}, "Did you mean 'gelu'"),
        ({"num_heads": 3}, "multiple of `num_heads`"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        T5Encoder(**{**TINY, **arguments})


def test_importing_the_encoder_does_not_import_keras_hub():
    code = "import sys, keras_elf.encoders.t5_encoder; sys.exit('keras_hub' in sys.modules)"
    root = pathlib.Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
