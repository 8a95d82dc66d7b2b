"""Preset directories: saved and loaded, here and in a fresh process."""

import json
import os
import shutil
import subprocess
import sys

import keras
import numpy as np
import pytest
from keras import ops

from keras_elf.encoders import LearnedTable, TransformerEncoder
from keras_elf.models import ELFBackbone, ELFGenerator
from keras_elf.samplers import ODESampler
from tests.models import fresh_process, small

pytestmark = pytest.mark.without_tensorflow


def averaged_model(**kwargs):
    """A model as after training: its averages differ from its weights."""
    model = small.enliven(small.generator(**kwargs))
    model.compile(optimizer=small.muon())
    model.optimizer.build(model.trainable_variables)
    model.optimizer._iterations.assign(1)
    model.optimizer.share_of_start.assign(0.1)  # as after a long run
    rng = np.random.default_rng(8)
    for variable, _ in model.optimizer.average_pairs():
        variable.assign_add(0.05 * rng.standard_normal(variable.shape).astype("float32"))
    return model


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    model = averaged_model(
        sampler=ODESampler("uniform"), latent_mean=0.01, latent_std=0.3, guidance_scale=1.5
    )
    folder = tmp_path_factory.mktemp("presets")
    model.save_to_preset(folder / "preset")
    model.save(folder / "model.keras")
    return model, folder, fresh_process.token_ids(model)


def test_loads_in_a_fresh_process(saved):
    """With nothing imported but `keras_elf.models`: a Keras file, then a preset."""
    _, folder, ids = saved
    command = [sys.executable, "-m", "tests.models.fresh_process", "generate"]
    command += [str(folder / "model.keras"), str(folder / "preset")]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"keras": ids, "preset": ids}
    assert len({tuple(row) for row in ids}) == 3


def test_files_and_what_they_hold(saved):
    model, folder, _ = saved
    files = {
        os.path.relpath(os.path.join(at, name), folder / "preset")
        for at, _, names in os.walk(folder / "preset")
        for name in names
    }
    assert files == {
        "config.json",
        "metadata.json",
        "model.weights.h5",
        "task.json",
        "task.weights.h5",
        "preprocessor.json",
        "tokenizer.json",
        "assets/tokenizer/vocabulary.spm",
    }
    assert sorted(os.listdir(folder)) == ["model.keras", "preset"]
    # No optimizer state travels with it.
    size = os.path.getsize(folder / "preset/model.weights.h5")
    assert os.path.getsize(folder / "preset/task.weights.h5") < 2 * size


def test_saves_the_averages(saved, tmp_path):
    model, folder, _ = saved
    raw = small.values(model.trainable_variables)
    loaded = ELFGenerator.from_preset(folder / "preset")
    stored = small.values(loaded.trainable_variables)
    assert small.all_equal(stored, small.averages(model))
    assert small.error_between(stored, raw) > 1e-2
    model.save_to_preset(tmp_path / "raw", use_averages=False)
    assert small.all_equal(raw, small.values(model.trainable_variables))
    loaded = ELFGenerator.from_preset(str(tmp_path / "raw"))
    assert small.all_equal(raw, small.values(loaded.trainable_variables))
    assert small.all_equal(
        small.values(model.encoder.variables), small.values(loaded.encoder.variables)
    )
    assert loaded.encoder.frozen and not loaded.encoder.trainable_variables


def test_configuration_round_trip(saved):
    model, folder, _ = saved
    loaded = ELFGenerator.from_preset(folder / "preset")
    ours, theirs = model.get_config(), loaded.get_config()
    assert json.dumps(ours, sort_keys=True) == json.dumps(theirs, sort_keys=True)
    assert loaded.sampling.sampler.schedule == "uniform"
    assert loaded.preprocessor(["And"])["token_ids"].shape == (1, small.LENGTH)


def test_overrides(saved):
    _, folder, _ = saved
    loaded = ELFGenerator.from_preset(
        folder / "preset", num_steps=8, sampler="sde", dtype="mixed_bfloat16", name="mine"
    )
    assert (loaded.sampling.num_steps, loaded.name) == (8, "mine")
    assert type(loaded.sampling.sampler).__name__ == "SDESampler"
    assert loaded.backbone.blocks[0].compute_dtype == "bfloat16"
    assert ELFGenerator.from_preset(folder / "preset").sampling.num_steps == 3


def test_without_weights(saved):
    model, folder, _ = saved
    loaded = ELFGenerator.from_preset(folder / "preset", load_weights=False)
    assert loaded.count_params() == model.count_params()
    kernel = small.values([loaded.backbone.blocks[0].attn.qkv.kernel])
    assert (
        small.error_between(kernel, small.values([model.backbone.blocks[0].attn.qkv.kernel])) > 0.1
    )
    assert not small.values([loaded.backbone.denoising_head.variables[-1]])[0].any()


def test_backbone_alone(saved):
    model, folder, _ = saved
    backbone = ELFBackbone.from_preset(str(folder / "preset"))
    assert small.all_equal(
        small.values(backbone.trainable_variables),
        small.averages(model)[: len(backbone.trainable_variables)],
    )


def test_a_preset_is_replaced_whole(saved, tmp_path):
    model, folder, _ = saved
    target = tmp_path / "preset"
    shutil.copytree(folder / "preset", target)
    (target / "notes.txt").write_text("mine")
    other = small.enliven(small.generator("learned", tied=True, preprocessor=None))
    other.save_to_preset(target)
    # A file of the user's own stays; what belonged to the old preset alone does not.
    assert (target / "notes.txt").read_text() == "mine"
    assert not (target / "task.weights.h5").exists()
    assert not (target / "preprocessor.json").exists()
    loaded = ELFGenerator.from_preset(target)
    assert loaded.preprocessor is None
    assert small.all_equal(small.values(other.variables[:5]), small.values(loaded.variables[:5]))


@pytest.mark.parametrize("kind", ["transformer", "learned"])
def test_tied_table_round_trip(kind, tmp_path):
    """One variable is encoder table and unembedding, before and after."""
    model = small.enliven(small.generator(kind, tied=True))
    if kind == "learned":
        table = model.encoder.token_embedding.embeddings
        table.assign(ops.flip(table.value, axis=0))
    model.save_to_preset(tmp_path / "preset")
    model.save(tmp_path / "model.keras")
    for loaded in (
        ELFGenerator.from_preset(tmp_path / "preset"),
        keras.saving.load_model(tmp_path / "model.keras"),
    ):
        assert isinstance(loaded.encoder, {"learned": LearnedTable}.get(kind, TransformerEncoder))
        assert loaded.backbone.tied_to is loaded.encoder
        assert loaded.backbone.unembedding.tied_to is loaded.encoder
        assert len(loaded.variables) == len(model.variables)
        assert loaded.count_params() == model.count_params()
        trainable = [v.path for v in loaded.trainable_variables if "token_embedding" in v.path]
        assert len(trainable) == (kind == "learned")
        for name, value in fresh_process.numbers(model).items():
            np.testing.assert_allclose(
                fresh_process.numbers(loaded)[name], value, atol=1e-6, err_msg=name
            )


def test_reduced_policies_come_back(saved, tmp_path):
    _, folder, _ = saved
    for policy in ("mixed_bfloat16", "bfloat16"):
        model = ELFGenerator.from_preset(folder / "preset", dtype=policy)
        model.save_to_preset(tmp_path / policy)
        for cls in (ELFGenerator, ELFBackbone):
            loaded = cls.from_preset(tmp_path / policy)
            assert loaded.dtype_policy.name == policy
        assert ELFBackbone.from_preset(tmp_path / policy, dtype="float32").dtype == "float32"


def test_files_of_something_else_are_not_replaced(saved, tmp_path):
    model, folder, _ = saved
    for name in ("config.json", "tokenizer.json", "manifest.json"):
        target = tmp_path / name
        target.mkdir()
        (target / name).write_text('{"model_type": "t5"}')
        for part in (model, model.backbone):
            with pytest.raises(ValueError, match="belong to something else"):
                part.save_to_preset(target)
        assert os.listdir(target) == [name]
    with pytest.raises(ValueError, match="is a file"):
        model.save_to_preset(folder / "model.keras")


def test_a_backbone_alone_says_so(saved, tmp_path):
    model, _, _ = saved
    model.backbone.save_to_preset(tmp_path / "network")
    with pytest.raises(ValueError, match="holds the network alone"):
        ELFGenerator.from_preset(tmp_path / "network")
    with pytest.raises(TypeError, match="unknown arguments \\['depth'\\]"):
        ELFBackbone.from_preset(tmp_path / "network", depth=1)
    assert ELFBackbone.from_preset(tmp_path / "network", load_weights=False, depth=2).depth == 2


def test_old_shards_go_with_their_preset(saved, tmp_path):
    model, _, _ = saved
    model.save_to_preset(tmp_path / "preset", max_shard_size=2e-5)
    assert len(list((tmp_path / "preset").glob("model_*.weights.h5"))) > 1
    assert small.all_equal(
        ELFGenerator.from_preset(tmp_path / "preset").backbone.get_weights(),
        small.averages(model)[: len(model.backbone.weights)],
    )
    model.save_to_preset(tmp_path / "preset")
    assert not list((tmp_path / "preset").glob("model_*.weights.h5"))


def test_an_empty_directory_does_not_stand_for_a_preset(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elf_nano_kjv").mkdir()
    assert ELFBackbone.from_preset("elf_nano_kjv").depth == 5
