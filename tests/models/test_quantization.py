"""Integer weights: how close they are, and that they survive files and fresh processes."""

import os
import subprocess
import sys

import keras
import numpy as np
import pytest
from keras import ops

from keras_elf.models import ELFBackbone, ELFGenerator, compiled
from keras_elf.models.quantization import quantizable_layers
from tests.models import fresh_process, small
from tests.models.test_weight_changes import trained


def quantised(backbone):
    return {x.path: x.dtype_policy.name for x in backbone._flatten_layers() if x.quantization_mode}


def again(backbone):
    """The network that the configuration describes, with the weights of this one."""
    made = ELFBackbone.from_config(backbone.get_config())
    made.set_weights(backbone.get_weights())
    return made


@pytest.fixture(scope="module")
def int8(tmp_path_factory):
    """`(model, outputs as floats, outputs as integers, folder with its files)`."""
    network = {"hidden_size": 96, "num_heads": 4}
    model = small.enliven(small.generator("gaussian", network=network, preprocessor=None))
    exact = fresh_process.numbers(model)
    folder = tmp_path_factory.mktemp("int8")
    model.backbone.save_to_preset(folder / "float32")
    model.quantize("int8")
    model.save_to_preset(folder / "preset")
    model.save(folder / "model.keras")
    return model, exact, fresh_process.numbers(model), folder


def test_int8_is_close_to_float32(int8):
    _, exact, outputs, _ = int8
    for name in ("hidden", "x_pred", "logits"):
        error = np.linalg.norm(outputs[name] - exact[name]) / np.linalg.norm(exact[name])
        print(f"int8 {name}: relative error {error:.4f}")
        assert 1e-4 < error < 0.05, name
    assert np.array_equal(outputs["clean"], exact["clean"])  # the encoder stays as it is


def test_all_kernels_are_integers(int8):
    backbone = int8[0].backbone
    kernels = [v for v in backbone.variables if v.name == "kernel"]
    assert len(kernels) == 14 and {v.dtype for v in kernels} == {"int8"}
    left = {v.path.rsplit("/", 1)[1] for v in int8[0].trainable_variables}
    assert left == {"scale", "bias", "time_tokens", "guidance_tokens", "mode_tokens"}


@pytest.mark.slow
def test_preset_in_a_fresh_process_gives_the_same_bits(int8):
    _, _, outputs, folder = int8
    command = [sys.executable, "-m", "tests.models.fresh_process", "numbers"]
    command += [str(folder / "preset"), str(folder / "out.npz")]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0, done.stderr[-3000:]
    with np.load(folder / "out.npz") as found:
        for name in outputs:
            assert np.array_equal(found[name], outputs[name]), name


@pytest.mark.slow
def test_keras_file_and_text(int8):
    model, _, _, folder = int8
    loaded = keras.saving.load_model(folder / "model.keras")
    assert quantised(loaded.backbone) == quantised(model.backbone)
    assert small.all_equal(
        small.values(loaded.backbone.variables), small.values(model.backbone.variables)
    )
    assert len({tuple(row) for row in fresh_process.token_ids(model)}) == 3


def test_preset_under_another_dtype(int8):
    loaded = ELFGenerator.from_preset(int8[3] / "preset", dtype="mixed_bfloat16")
    ours, theirs = loaded.backbone.blocks[0].attn.qkv, int8[0].backbone.blocks[0].attn.qkv
    assert ours.dtype_policy.name == "int8_from_mixed_bfloat16"
    assert small.all_equal(small.values(ours.variables), small.values(theirs.variables))


def test_file_size(int8):
    exact, integers = (
        os.path.getsize(int8[3] / name / "model.weights.h5") for name in ("float32", "preset")
    )
    print(f"model.weights.h5: {exact} bytes, int8 {integers / exact:.2f} of that")
    assert integers < 0.4 * exact


@pytest.mark.slow
def test_modes_and_filters_are_remembered():
    backbone = small.enliven_backbone(small.backbone())
    backbone.quantize("int8", filters="mlp")
    backbone.quantize("int4", filters=["qkv", "^w3$"])
    made = again(backbone)
    modes = quantised(made)
    assert modes == quantised(backbone)
    assert {m.split("_from_")[0] for m in modes.values()} == {"int8", "int4/128"}
    assert len(modes) == 6 and modes["blocks_0/mlp/w3"].startswith("int4")
    assert small.all_equal(small.values(made.variables), small.values(backbone.variables))


def test_a_configuration_of_keras_is_remembered():
    backbone = small.backbone()
    backbone.quantize(config=keras.quantizers.Int8QuantizationConfig(activation_quantizer=None))
    assert backbone.blocks[0].attn.qkv.inputs_quantizer is None
    assert again(backbone).blocks[0].attn.qkv.inputs_quantizer is None


@pytest.mark.slow
def test_of_a_tied_encoder_only_the_table_becomes_integers():
    model = small.generator("transformer", tied=True, preprocessor=None)
    model.backbone.quantize("int8")
    integers = {v.path for v in model.encoder.variables if v.dtype == "int8"}
    assert len(integers) == 1 and "token_embedding" in integers.pop()
    made = again(model.backbone)
    assert quantised(made) == quantised(model.backbone)
    assert small.all_equal(small.values(made.variables), small.values(model.backbone.variables))


def test_what_cannot_work_is_refused(tmp_path):
    model = small.generator("learned", preprocessor=None)
    backbone = model.backbone
    with pytest.raises(ValueError, match=r"\['int8', 'int4'\]. Received: 'float8'"):
        backbone.quantize("float8")
    with pytest.raises(ValueError, match="Expected one of.*int88"):
        backbone.quantize("int88")
    with pytest.raises(ValueError, match="must leave a layer.*'qkv'"):
        backbone.quantize("int8", filters="attention")
    for arguments, message in (
        ({"mode": "int88"}, r"\['int8', 'int4'\]. Received: 'int88'"),
        ({}, "Received: None"),
        ({"mode": "int8", "filters": "attention"}, "must leave a layer"),
        ({"mode": "int8", "config": keras.quantizers.Int4QuantizationConfig()}, "of the `mode`"),
    ):
        with pytest.raises(ValueError, match=message):
            backbone.check_quantization(**arguments)
    backbone.check_quantization("int8")
    assert not quantised(backbone)
    backbone.quantize("int8", filters="w3")
    with pytest.raises(ValueError, match="quantised already: .*w3"):
        backbone.quantize("int8")
    assert len(quantised(backbone)) == 1
    config = backbone.get_config()
    config["quantization"][0]["layers"] = ["blocks_7/mlp/w3"]
    with pytest.raises(ValueError, match="has not.*blocks_7"):
        ELFBackbone.from_config(config)
    model.encoder.token_embedding.quantize("int8")
    with pytest.raises(ValueError, match="Only a quantised backbone.*token_embedding"):
        model.save_to_preset(tmp_path / "preset")
    assert not os.listdir(tmp_path)
    assert model.encoder.token_embedding not in quantizable_layers(backbone)


@pytest.mark.slow
def test_quantise_starts_from_the_averages():
    model, floats = trained(), trained()
    floats.set_weights(floats.get_weights())
    for (variable, average), target in zip(
        model.optimizer.average_pairs(), floats.trainable_variables, strict=True
    ):
        assert variable.shape == target.shape
        target.assign(ops.copy(average.value))
    floats.compile(run_eagerly=True)
    floats.backbone.quantize("int8")
    model.quantize("int8")
    z = np.random.default_rng(0).normal(size=(2, 5, small.LATENT_DIM)).astype("float32")
    one, other = (
        ops.convert_to_numpy(
            compiled(lambda z, m=m: m.backbone.hidden_states(z, 0.5), m.backbone.variables)(z)
        )
        for m in (model, floats)
    )
    np.testing.assert_allclose(one, other, atol=1e-5)


def test_float16_cannot_become_int8():
    backbone = small.backbone(dtype="mixed_float16")
    for quantize in (backbone.quantize, backbone.check_quantization):
        with pytest.raises(ValueError, match="int8.*float16"):
            quantize("int8")
    assert not quantised(backbone)


def test_quantising_a_compiled_model_warns_of_nothing(recwarn):
    model = small.generator("gaussian", preprocessor=None)
    model.quantize("int8", filters="w3")
    assert not [w for w in recwarn if "quantize" in str(w.message)]
