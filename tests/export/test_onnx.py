"""An exported ONNX file: its numbers, and text sampled from it without Keras."""

import importlib.util
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from keras_elf.export import export_denoiser
from keras_elf.models import averaged_weights
from tests.export.test_exported_network import heads, inputs
from tests.models import small
from tests.presets.test_presets import averaged_model

onnxruntime = pytest.importorskip("onnxruntime")
if (
    importlib.util.find_spec(
        {"jax": "jax2onnx", "tensorflow": "tf2onnx"}.get(small.BACKEND, "onnx")
    )
    is None
):
    pytest.skip("no converter to ONNX", allow_module_level=True)

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "sample_with_onnxruntime.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("sample_with_onnxruntime", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    model = averaged_model(kind="gaussian")
    path = tmp_path_factory.mktemp("onnx") / "elf.onnx"
    export_denoiser(model, path)
    assert [p.name for p in path.parent.iterdir()] == ["elf.onnx"]
    return model, path


def test_numbers_at_any_batch(exported):
    model, path = exported
    session = onnxruntime.InferenceSession(path)
    length, width = small.LENGTH, small.LATENT_DIM
    assert [(v.name, v.shape) for v in session.get_inputs()] == [
        ("z", ["batch", length, width]),
        ("self_condition", ["batch", length, width]),
        ("t", ["batch"]),
        ("w", ["batch"]),
        ("gate", ["batch"]),
    ]
    assert [(v.name, v.shape) for v in session.get_outputs()] == [
        ("x", ["batch", length, width]),
        ("logits", ["batch", length, small.VOCABULARY_SIZE]),
    ]
    for rows in (1, 3):
        values = inputs(rows)
        found = dict(zip(("x", "logits"), session.run(["x", "logits"], values), strict=True))
        with averaged_weights(model):
            exact = heads(model.backbone, values)
        for name in exact:
            error = np.abs(found[name] - exact[name]).max()
            print(f"ONNX from {small.BACKEND}, batch {rows}, {name}: largest error {error:.1e}")
            assert error < 2e-5
    # The averages were exported, not the weights of the last step.
    assert np.abs(heads(model.backbone, values)["x"] - exact["x"]).max() > 1e-2


@pytest.mark.parametrize("sampler", ["ode", "sde"])
def test_the_example_gives_the_tokens_of_generate(exported, example, sampler):
    model, path = exported
    network = example.Network(path)
    settings = dict(num_samples=2, num_steps=4, sampler=sampler, seed=7)
    # A sampler given by name has its own default, not the model's.
    rows = example.sample(network, **settings, gamma=1.0)
    texts = model.generate(**settings, verbose=False)
    tokenizer = example.sentencepiece.SentencePieceProcessor(model_proto=small.small.proto())
    assert [example.decode(row, tokenizer, network.settings) for row in rows] == texts
    assert len(set(texts)) == 2


def test_the_example_as_a_script(exported, tmp_path):
    model, path = exported
    (tmp_path / "vocabulary.spm").write_bytes(small.small.proto())
    command = [sys.executable, str(EXAMPLE), str(path), "--num-steps", "2", "--num-samples", "2"]
    command += ["--tokenizer", str(tmp_path / "vocabulary.spm"), "--sampler", "ode", "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    texts = model.generate(num_samples=2, num_steps=2, seed=3, sampler="ode", verbose=False)
    assert done.stdout.splitlines() == texts


def test_the_example_needs_no_keras():
    code = f"""
import runpy, sys
runpy.run_path({str(EXAMPLE)!r})
assert not {{"keras", "keras_elf", "jax", "tensorflow", "torch"}} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
