"""The denoiser as one function of arrays: what it returns and what it refuses."""

import json

import keras
import numpy as np
import pytest
from keras import ops

from keras_elf.export import ExportedNetwork, export_denoiser, exporting, sampling_settings
from keras_elf.models import compiled
from keras_elf.objectives import ELFObjective
from keras_elf.samplers import ODESampler
from tests.models import small


def inputs(rows, length=small.LENGTH, width=small.LATENT_DIM):
    rng = np.random.default_rng(rows)
    z, previous = rng.standard_normal((2, rows, length, width)).astype("float32")
    return {
        "z": z,
        "self_condition": previous,
        "t": np.linspace(0.1, 1.0, rows).astype("float32"),
        "w": np.linspace(0.5, 3.0, rows).astype("float32"),
        "gate": (np.arange(rows) % 2).astype("float32"),
    }


def heads(backbone, values):
    """Both heads by the backbone's own method, as one compiled function."""

    def run(z, previous, t, w, gate):
        hidden = backbone.hidden_states(z, t, previous, w, gate)
        return {"x": backbone.denoising_head(hidden), "logits": backbone.unembedding(hidden)}

    return numpy(compiled(run, backbone.variables)(*values.values()))


def call(denoiser, values):
    return numpy(compiled(lambda values: denoiser(values), denoiser.variables)(values))


def numpy(tensors):
    return {name: ops.convert_to_numpy(value) for name, value in tensors.items()}


def test_it_is_the_backbone():
    backbone = small.enliven_backbone(small.backbone())
    denoiser = ExportedNetwork(backbone, small.LENGTH)
    assert [id(v) for v in denoiser.variables] == [id(v) for v in backbone.variables]
    values = inputs(2)
    found = call(denoiser, values)
    for name, value in heads(backbone, values).items():
        np.testing.assert_allclose(found[name], value, atol=2e-5)
    assert tuple(denoiser.output["x"].shape) == (None, small.LENGTH, small.LATENT_DIM)


def test_its_x_is_clean_whatever_the_network_predicts():
    backbone = small.enliven_backbone(small.backbone(num_guidance_tokens=0))
    values = inputs(2)
    values.pop("w")
    raw, clean = (
        call(ExportedNetwork(backbone, small.LENGTH, objective), values)["x"]
        for objective in (None, ELFObjective(prediction="v"))
    )
    gap = np.maximum(1 - values["t"], 0.05)[:, None, None]
    np.testing.assert_allclose(clean, values["z"] + gap * raw, atol=2e-5)


def test_config_round_trip():
    denoiser = ExportedNetwork(small.backbone(), 5, ELFObjective(prediction="epsilon"))
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(denoiser))
    assert isinstance(again, ExportedNetwork) and again.get_config() == denoiser.get_config()


def test_settings_are_what_a_sampler_needs():
    model = small.generator("gaussian", sampler=ODESampler("uniform"), latent_mean=0.1)
    settings = json.loads(json.dumps(sampling_settings(model, 7)))
    assert settings["sampling"] == {
        "sampler": "ode",
        "schedule": "uniform",
        "time_mean": -1.5,
        "time_std": 0.8,
        "num_steps": 3,
        "guidance_scale": 1.0,
        "self_cond_guidance_scale": 3.0,
    }
    assert settings["pad_token_id"] == model.preprocessor.pad_token_id
    assert settings["end_token_id"] == model.preprocessor.end_token_id
    assert (settings["length"], settings["latent_mean"], settings["noise_scale"]) == (7, 0.1, 2.0)
    bare = sampling_settings(model.backbone, 7)
    assert bare["sampling"] is None and set(bare) == set(settings)


def test_what_cannot_work_is_refused(tmp_path, monkeypatch):
    backbone = small.backbone()
    path = tmp_path / "elf.onnx"
    with pytest.raises(ValueError, match="`format` must be one of.*'onx'.*Did you mean 'onnx'"):
        export_denoiser(backbone, path, 4, format="onx")
    with pytest.raises(ValueError, match="`length` must be given"):
        export_denoiser(backbone, path)
    with pytest.raises(ValueError, match="`length`.*>= 1"):
        export_denoiser(backbone, path, 0)
    with pytest.raises(ValueError, match="Dense lacks"):
        export_denoiser(keras.layers.Dense(3), path, 4)
    with pytest.raises(ValueError, match="must be float32.*mixed_bfloat16"):
        export_denoiser(small.backbone(dtype="mixed_bfloat16"), path, 4)
    monkeypatch.setattr(exporting, "MAX_ONNX_BYTES", 1000)
    with pytest.raises(ValueError, match="at most 2 GB.*tf_saved_model"):
        export_denoiser(backbone, path, 4)
    monkeypatch.undo()
    monkeypatch.setattr(exporting.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'onnx.*pip install "keras-elf\[export\]"'):
        export_denoiser(backbone, path, 4)
    monkeypatch.undo()
    if small.BACKEND == "torch":
        with pytest.raises(ValueError, match="does not work on the torch backend.*'onnx'"):
            export_denoiser(backbone, path, 4, format="tf_saved_model")
    backbone.quantize("int8", filters="w3")
    with pytest.raises(ValueError, match="must not be quantised.*w3"):
        export_denoiser(backbone, path, 4)
    assert not list(tmp_path.iterdir())


def test_a_failing_export_leaves_what_was_there(tmp_path, monkeypatch):
    def failing(*args, **kwargs):
        raise RuntimeError("no converter likes this")

    monkeypatch.setattr(exporting, "_write_onnx", failing)
    monkeypatch.setattr(exporting, "_check_backend", lambda format: None)
    path = tmp_path / "elf.onnx"
    path.write_text("an earlier export")
    with pytest.raises(RuntimeError, match="no converter"):
        export_denoiser(small.backbone(), path, 4)
    assert path.read_text() == "an earlier export"
    assert [p.name for p in tmp_path.iterdir()] == ["elf.onnx"]
    with pytest.raises(ValueError, match="must be a file"):
        export_denoiser(small.backbone(), tmp_path, 4)
    monkeypatch.setattr(exporting, "_check_numbers", lambda *args: None)
    with pytest.raises(ValueError, match="not a SavedModel"):
        export_denoiser(small.backbone(), tmp_path, 4, format="tf_saved_model")
    with pytest.raises(ValueError, match="Received a file"):
        export_denoiser(small.backbone(), path, 4, format="tf_saved_model")
