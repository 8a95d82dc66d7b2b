"""Bad input: the argument is named, what came is shown, nothing is half written."""

import json
import os
import pathlib
import shutil

import keras
import keras_hub
import numpy as np
import pytest

from keras_elf.encoders import GaussianTable
from keras_elf.models import ELFBackbone, ELFGenerator, ELFPreprocessor, architecture
from keras_elf.samplers import ODESampler, SDESampler
from tests.models import small

NAN, INF = float("nan"), float("inf")


@pytest.fixture(scope="module")
def model():
    return small.generator("gaussian", preprocessor=small.preprocessor(condition_length=5))


@pytest.fixture(scope="module")
def on_ids():
    return small.generator("gaussian", preprocessor=None)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(num_steps=0), "`num_steps` must be a whole number >= 1. Received: 0"),
        (dict(num_steps=2.5), "`num_steps` must be a whole number >= 1. Received: 2.5"),
        (dict(num_samples=0), "`num_samples` must be a whole number >= 1. Received: 0"),
        (dict(num_samples=-1), "`num_samples` must be .* Received: -1"),
        (dict(batch_size=0), "`batch_size` must be a whole number >= 1. Received: 0"),
        (dict(length=0), "`length` must be a whole number >= 1. Received: 0"),
        (dict(guidance_scale=NAN), "`guidance_scale` must be a finite number.* Received: nan"),
        (dict(guidance_scale="2"), "`guidance_scale` must be a finite number.* Received: '2'"),
        (
            dict(self_cond_guidance_scale=NAN),
            "`self_cond_guidance_scale` must be a finite number.* Received: nan",
        ),
        (dict(self_cond_guidance_scale=INF), "`self_cond_guidance_scale` must be a finite"),
        (dict(sampler="euler"), r"`sampler` must be one of .*'sde'\]. Received: 'euler'"),
        (dict(sampler="odee"), "Did you mean 'ode'"),
        (dict(sampler=3), "`sampler` must be a keras_elf.samplers.Sampler or one of .* 3"),
        (dict(seed=-1), "`seed` must be a whole number in .* Received: -1"),
        (dict(seed=1.5), "`seed` must be a whole number"),
        (dict(inputs=[]), "`inputs` must hold at least one condition. Received: an empty list"),
        (dict(inputs=""), "`conditions` must not hold empty texts. Received: ''"),
        (dict(inputs=["And", ""]), "empty texts. Received: '' at index 1"),
        (dict(inputs=[[5, 200]]), r"\[0, 200\).*200"),
        (dict(inputs=[[-1]]), r"\[0, 200\).*-1"),
        (dict(inputs=["And"], num_samples=2), "`num_samples` is for unconditional text"),
        (dict(inputs=["And"], length=8), "`length` must be the preprocessor's .* 12 .* 8"),
    ],
)
def test_refused_by_generate(model, arguments, message):
    with pytest.raises(ValueError, match=message):
        model.generate(**arguments, verbose=False)


@pytest.mark.parametrize(
    "inputs, message",
    [
        ("And", "`inputs` must be lists of token ids: this model has no preprocessor"),
        (["And"], "`inputs` must be lists of token ids"),
        ([], "`inputs` must hold at least one condition"),
        ([[]], "1 to 11 tokens. Received: 0 tokens in condition 0"),
        ([[5], list(range(12))], "1 to 11 tokens. Received: 12 tokens in condition 1"),
        ([[200]], r"\[0, 200\).*200"),
    ],
)
def test_refused_ids_as_conditions(on_ids, inputs, message):
    with pytest.raises(ValueError, match=message):
        on_ids.generate(inputs, verbose=False)


def test_unknown_argument_of_generate(model):
    with pytest.raises(TypeError, match="steps"):
        model.generate(steps=3)


def test_a_condition_that_is_cut_is_announced(model):
    seen = []
    with pytest.warns(UserWarning, match="1 of 1 texts were too long and were cut to"):
        with pytest.raises(InterruptedError):
            # Stopped before the sampling, which is not what this is about.
            model.generate(small.texts(5)[4:], callback=_stop(seen), verbose=False, num_steps=1)
    assert len(seen) == 1


def _stop(seen):
    def stop(state):
        seen.append(state)
        raise InterruptedError

    return stop


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(gamma=-0.5), "`gamma` must be a finite number >= 0. Received: -0.5"),
        (dict(gamma=NAN), "`gamma` must be a finite number >= 0. Received: nan"),
        (dict(noise_scale=-1), "`noise_scale` must be"),
        (dict(schedule="cosine"), "`schedule` must be one of .* Received: 'cosine'"),
        (dict(schedule="logit_norm"), "Did you mean 'logit_normal'"),
        (dict(time_std=-1), "`time_std` must be"),
        (dict(time_mean=NAN), "`time_mean` must be"),
    ],
)
def test_refused_by_samplers(arguments, message):
    with pytest.raises(ValueError, match=message):
        SDESampler(**arguments)
    if not set(arguments) & {"gamma", "noise_scale"}:
        with pytest.raises(ValueError, match=message):
            ODESampler(**arguments)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(num_steps=0), "`num_steps` must be a whole number >= 1. Received: 0"),
        (dict(guidance_scale=NAN), "`guidance_scale` must be a finite number"),
        (dict(self_cond_guidance_scale=INF), "`self_cond_guidance_scale` must be a finite"),
        (dict(label_drop_probability=1.5), r"`label_drop_probability` must be .*\[0, 1\].* 1.5"),
        (dict(label_drop_probability=NAN), "`label_drop_probability` must be"),
        (dict(latent_std=0), "`latent_std` must be above 0. Received: 0"),
        (dict(latent_mean=NAN), "`latent_mean` must be a finite number"),
        (dict(sampler="euler"), "`sampler` must be one of"),
        (dict(sequence_length=0), "`sequence_length` must be"),
        (dict(encoder=None), "`encoder` must be a keras_elf.encoders.TextEncoder"),
        (dict(encoder=keras.layers.Embedding(200, 16)), "`encoder` must be a keras_elf.encoders"),
        (
            dict(encoder=GaussianTable(200, 8)),
            "`encoder` must have the backbone's latent width. .*latent_dim=8, .*latent_dim=16",
        ),
        (
            dict(encoder=GaussianTable(100, 16)),
            "`encoder` must know every id .*vocabulary_size=100, .*vocabulary_size=200",
        ),
        (dict(backbone="elf_b"), "network must be a keras.Layer .*, such as ELFBackbone.*'elf_b'"),
        (
            dict(preprocessor=small.preprocessor(vocabulary_size=300)),
            "`preprocessor` must not have more ids .*=300, .*=200",
        ),
    ],
)
def test_refused_by_the_constructor(on_ids, arguments, message):
    parts = {"backbone": on_ids.backbone, "encoder": on_ids.encoder}
    with pytest.raises(ValueError, match=message):
        ELFGenerator(**{**parts, **arguments})


def test_unknown_arguments(on_ids, model):
    parts = {"backbone": on_ids.backbone, "encoder": on_ids.encoder}
    with pytest.raises(TypeError, match=r"ELFGenerator got unknown arguments \['steps'\]"):
        ELFGenerator(**parts, steps=3)
    with pytest.raises(TypeError, match=r"ELFBackbone got unknown arguments \['num_layers'\]"):
        small.backbone(num_layers=3)
    with pytest.raises(TypeError, match=r"unknown arguments \['num_layers'\]"):
        ELFGenerator.from_preset("elf_nano_kjv", num_layers=3)
    rows = small.rows(6)
    with pytest.raises(TypeError, match="batchsize"):
        model.fit(rows, batchsize=6)
    with pytest.raises(TypeError, match="`fit` takes only `x` by position"):
        model.fit(rows, rows["token_ids"])
    with pytest.raises(TypeError, match="`evaluate` takes only `x` by position"):
        model.evaluate(rows, rows["token_ids"])
    with pytest.raises(ValueError, match="`y` must be None"):
        model.fit(rows, y=rows["token_ids"])
    with pytest.raises(ValueError, match="`loss` and `metrics` must be None"):
        model.compile(loss="mse")
    with pytest.raises(ValueError, match="`loss` and `metrics` must be None"):
        model.compile(metrics=["accuracy"])


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(num_heads=3), "`num_heads` must divide `hidden_size`. .*num_heads=3, hidden_size=16"),
        (dict(hidden_size=6, num_heads=2), "must be even for rotary pairs. Received: 6 / 2 = 3"),
        (dict(num_heads=0), "`num_heads` must be"),
        (dict(vocabulary_size=0), "`vocabulary_size` must be a whole number >= 1. Received: 0"),
        (dict(latent_dim=-4), "`latent_dim` must be .* Received: -4"),
        (dict(depth=0), "`depth` must be a whole number >= 1. Received: 0"),
        (dict(depth=1.5), "`depth` must be a whole number >= 1. Received: 1.5"),
        (dict(bottleneck_dim=0), "`bottleneck_dim` must be"),
        (dict(dropout=1.2), r"`dropout` must be .*\[0, 1\].* Received: 1.2"),
        (dict(attention_dropout=-1), "`attention_dropout` must be"),
        (dict(mlp_ratio=NAN), "`mlp_ratio` must be"),
        (dict(num_guidance_tokens=-1), "`num_guidance_tokens` must be"),
        (
            dict(tied_to=keras.layers.Embedding(200, 8)),
            "The table of `tied_to` must have width embedding_dim. .*=16, table of 200 x 8",
        ),
        (
            dict(tied_to=keras.layers.Embedding(100, 16)),
            "at least vocabulary_size rows. .*vocabulary_size=200, table of 100 x 16",
        ),
        (dict(tied_to=keras.layers.Dense(16)), "`tied_to` must be an Embedding layer"),
    ],
)
def test_refused_by_the_backbone(change, message):
    # With dropout in the middle blocks only, a single one would never see it.
    with pytest.raises(ValueError, match=message):
        small.backbone(**{"depth": 4, **change})


def test_unknown_architecture():
    with pytest.raises(ValueError, match="`architecture` must be one of .*'elf_b'.*'elf_x'"):
        architecture("elf_x")
    with pytest.raises(ValueError, match="`architecture` must be one of"):
        ELFBackbone.from_architecture("ELF-B")


def test_wrong_latent_width(on_ids):
    z = np.zeros((1, 4, 8), "float32")
    with pytest.raises(ValueError, match=r"`z` must have latent_dim=16 .*\(1, 4, 8\)"):
        on_ids.backbone.hidden_states(z, 0.5)


IDS = np.full((4, 6), 5)


@pytest.mark.parametrize(
    "x, message",
    [
        (IDS + 195, r"\[0, 200\).*200"),
        (IDS - 6, r"\[0, 200\).*-1"),
        ({"token_ids": IDS, "labels": IDS}, r"`x` has unknown keys \['labels'\]"),
        (
            {"token_ids": IDS, "is_valid": IDS[:, :3] > 0},
            r"`is_valid` must have the shape .*\(4, 6\)",
        ),
        ({"token_ids": IDS[0]}, r"`token_ids` must have shape \(rows, length\)"),
        (IDS[:0], r"`token_ids` must have shape \(rows, length\), both above 0"),
        (["And", "God"], "no preprocessor, so `x` must be token ids"),
        (IDS / 2.0, "no preprocessor, so `x` must be token ids"),
    ],
)
def test_refused_by_fit(on_ids, x, message):
    for use in (on_ids.fit, on_ids.evaluate):
        with pytest.raises(ValueError, match=message):
            use(x, verbose=0)


@pytest.mark.parametrize(
    "x, message",
    [
        ([], "at least one entry"),
        (["And", ""], "empty texts.*at index 1"),
        ({"condition": ["And"]}, "must have the keys 'target'"),
        ({"target": ["And", "God"], "condition": ["In"]}, "1 conditions, 2 targets"),
    ],
)
def test_refused_texts(model, x, message):
    with pytest.raises(ValueError, match=message):
        model.fit(x, verbose=0)


def test_refused_batch_sizes(on_ids):
    with pytest.raises(ValueError, match=r"fewer rows \(4\) than one batch .*`batch_size=8`"):
        on_ids.fit(IDS, batch_size=8, verbose=0)
    with pytest.raises(ValueError, match="`batch_size` must be a whole number >= 1. Received: 0"):
        on_ids.fit(IDS, batch_size=0, verbose=0)


def test_untrained_tokenizer():
    untrained = ELFPreprocessor(keras_hub.models.T5Tokenizer(proto=None), small.LENGTH)
    made = small.generator("gaussian", preprocessor=untrained)
    for use in (made.fit, made.evaluate, made.generate):
        with pytest.raises(ValueError, match="`tokenizer` .* is untrained"):
            use(["And"], verbose=0)


def test_float16_is_refused():
    keras.config.set_dtype_policy("mixed_float16")
    made = small.generator("gaussian", preprocessor=None)
    with pytest.raises(ValueError, match="float16 has too little range.*mixed_bfloat16.*float16"):
        made.fit(IDS, verbose=0)


# === Presets ===


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    path = tmp_path_factory.mktemp("errors") / "preset"
    small.generator().save_to_preset(path)
    return path


def _copy(preset, tmp_path):
    return pathlib.Path(shutil.copytree(preset, tmp_path / "copy"))


def test_missing_directory(tmp_path):
    with pytest.raises(ValueError, match="`preset` must be a directory .*/nowhere"):
        ELFGenerator.from_preset(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="which is not a directory"):
        ELFGenerator.from_preset(tmp_path / "file")
    with pytest.raises(ValueError, match="config.json cannot be read"):
        ELFGenerator.from_preset(tmp_path)


FILES = [
    "config.json",
    "task.json",
    "model.weights.h5",
    "task.weights.h5",
    "preprocessor.json",
    "tokenizer.json",
    "assets/tokenizer/vocabulary.spm",
]


@pytest.mark.parametrize("file", FILES)
def test_each_file_is_missed(preset, tmp_path, file):
    copy = _copy(preset, tmp_path)
    (copy / file).unlink()
    name = file.removesuffix(".h5")
    with pytest.raises(ValueError, match=f"preset .*/copy' is incomplete: .*{name}"):
        ELFGenerator.from_preset(copy)


@pytest.mark.parametrize("file", FILES)
def test_each_file_may_be_damaged(preset, tmp_path, file):
    copy = _copy(preset, tmp_path)
    content = (copy / file).read_bytes()
    (copy / file).write_bytes(content[: len(content) // 2])
    what = f"{file} in preset .*/copy' is not valid JSON" if file.endswith("json") else "damaged"
    with pytest.raises(ValueError, match=what) as caught:
        ELFGenerator.from_preset(copy)
    assert str(copy) in str(caught.value)


@pytest.mark.parametrize("file", ["config.json", "task.json"])
def test_another_class(preset, tmp_path, file):
    copy = _copy(preset, tmp_path)
    other = keras.saving.serialize_keras_object(keras.layers.Dense(3))
    (copy / file).write_text(json.dumps({**other, "registered_name": "keras_hub>GemmaBackbone"}))
    with pytest.raises(ValueError, match=f"{file} in preset .* holds "):
        ELFGenerator.from_preset(copy)
    (copy / file).write_text("[1, 2]")
    with pytest.raises(ValueError, match=f"{file} in preset .* is not a Keras configuration"):
        ELFGenerator.from_preset(copy)


def test_target_below_a_file(model, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="`preset_dir` cannot be written: .*/file/preset"):
        model.save_to_preset(tmp_path / "file" / "preset")
    assert (tmp_path / "file").read_text() == "mine" and len(os.listdir(tmp_path)) == 1


def test_target_is_a_file(model, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="`preset_dir` cannot be written: .*/file"):
        model.save_to_preset(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine" and os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [OSError("disk full"), RuntimeError("boom"), KeyboardInterrupt()])
def test_a_failure_keeps_what_was_there(model, preset, tmp_path, monkeypatch, error):
    copy = _copy(preset, tmp_path)
    before = {p: p.read_bytes() for p in copy.rglob("*") if p.is_file()}

    def fail(self, path):
        pathlib.Path(path).write_bytes(b"half")
        raise error

    monkeypatch.setattr(ELFGenerator, "save_task_weights", fail)
    for target in (copy, tmp_path / "new"):
        with pytest.raises((ValueError, RuntimeError, KeyboardInterrupt)) as caught:
            model.save_to_preset(target)
        if isinstance(error, OSError):
            assert "`preset_dir` cannot be written" in str(caught.value)
            assert "disk full" in str(caught.value)
    assert {p: p.read_bytes() for p in copy.rglob("*") if p.is_file()} == before
    assert os.listdir(tmp_path) == ["copy"]
    ELFGenerator.from_preset(copy)


def test_untrained_tokenizer_is_not_saved(tmp_path):
    untrained = ELFPreprocessor(keras_hub.models.T5Tokenizer(proto=None), small.LENGTH)
    made = small.generator("gaussian", preprocessor=untrained)
    with pytest.raises(ValueError, match="untrained"):
        made.save_to_preset(tmp_path / "preset")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [("epochs", 1.5), ("epochs", 0), ("initial_epoch", -1)]
    + [("steps_per_epoch", -1), ("steps_per_epoch", 2.5), ("validation_steps", 0)],
)
def test_counts_of_a_run_are_whole_numbers(model, name, value):
    model.compile(optimizer="sgd")
    with pytest.raises(ValueError, match=f"`{name}` must be a whole number >= .* {value}"):
        model.fit(["And God said"] * 4, verbose=0, **{name: value})
