"""The presets that come with the package, and the recipes of the published models."""

import importlib.util
import json
import math
import pathlib

import keras
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_elf.models import (
    ARCHITECTURES,
    ELFBackbone,
    ELFGenerator,
    TrainingRecipe,
    architecture,
    parameter_count,
)
from keras_elf.optimizers import Muon
from keras_elf.presets import bundled
from keras_elf.samplers import ODESampler, SDESampler

pytestmark = pytest.mark.without_tensorflow

PUBLISHED = {
    "elf_b_owt": 104_579_940,
    "elf_m_owt": 342_540_036,
    "elf_l_owt": 652_103_332,
    "elf_b_de_en": 104_579_940,
    "elf_b_xsum": 104_579_940,
    "elf_b_pd_owt": 104_579_940,
}
MAKE = pathlib.Path(__file__).parents[2] / "presets/make.py"


def config(name, file="task.json"):
    return json.loads((bundled.directory(name) / file).read_text())["config"]


def test_presets_tell_what_they_are():
    presets = ELFGenerator.presets
    assert set(PUBLISHED) <= set(presets) and "elf_nano_kjv" in presets
    for name, facts in presets.items():
        assert facts["description"] and facts["license"] and facts["weights"]
        assert facts["parameters"] == parameter_count(**config(name, "config.json"))
        assert facts["parameters"] == PUBLISHED.get(name, facts["parameters"])
    best = presets["elf_b_owt"]["published"][2]
    assert (best["num_steps"], best["generative_perplexity"]) == (32, 24.1)
    assert ELFBackbone.presets.keys() == presets.keys()


@pytest.mark.parametrize("name", PUBLISHED)
def test_settings_are_the_published_ones(name):
    task = config(name)
    sizes = architecture({"b": "elf_b", "m": "elf_m", "l": "elf_l"}[name.split("_")[1]])
    assert task["backbone"]["config"] == config(name, "config.json")
    assert {k: task["backbone"]["config"][k] for k in sizes} == sizes
    assert (task["latent_mean"], task["latent_std"]) == (0.0, 0.2)
    assert task["encoder"]["config"]["num_layers"] == 6
    conditional = name in ("elf_b_de_en", "elf_b_xsum")
    sampler = keras.saving.deserialize_keras_object(task["sampler"])
    assert isinstance(sampler, ODESampler if conditional else SDESampler)
    assert task["objective"]["config"]["decode_noise_scale"] == (1.0 if conditional else 5.0)
    assert task["label_drop_probability"] == (0.1 if conditional else 0.0)
    assert task["loss_on_padding"] == conditional
    assert task["guidance_scale"] == (2.0 if conditional else 1.0)
    rows = config(name, "preprocessor.json")
    lengths = {"elf_b_de_en": (128, 64), "elf_b_xsum": (1088, 1024)}
    assert (rows["sequence_length"], rows["condition_length"]) == lengths.get(name, (1024, None))
    assert rows["pad_with"] == ("end" if conditional else "pad")


@pytest.mark.slow
def test_files_are_those_that_make_writes(tmp_path):
    """One preset stands for all: none was edited by hand."""
    spec = importlib.util.spec_from_file_location("make_presets", MAKE)
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    for file, content in make.files("elf_b_de_en").items():
        assert json.loads((bundled.directory("elf_b_de_en") / file).read_text()) == content, file


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(
    depth=st.integers(1, 3),
    heads=st.integers(1, 3),
    ratio=st.sampled_from([1.0, 2.7, 4.0]),
    tokens=st.tuples(st.integers(1, 3), st.integers(0, 2), st.integers(1, 2)),
    vocabulary=st.integers(1, 50),
)
def test_parameters_are_counted_without_building(depth, heads, ratio, tokens, vocabulary):
    sizes = {
        "vocabulary_size": vocabulary,
        "latent_dim": 6,
        "depth": depth,
        "hidden_size": 4 * heads,
        "num_heads": heads,
        "mlp_ratio": ratio,
        "bottleneck_dim": 5,
        "num_time_tokens": tokens[0],
        "num_guidance_tokens": tokens[1],
        "num_mode_tokens": tokens[2],
    }
    with keras.StatelessScope():
        backbone = ELFBackbone(**sizes)
    shapes = [v.shape for v in backbone.variables]
    assert parameter_count(**sizes) == sum(math.prod(shape) for shape in shapes)


def test_a_preset_that_needs_no_network():
    model = ELFGenerator.from_preset("elf_nano_kjv")
    one, two = (model.generate(num_samples=2, num_steps=1, seed=s, verbose=False) for s in (0, 1))
    assert one != two and all(text.strip() for text in one)
    assert model.backbone.count_params() == ELFGenerator.presets["elf_nano_kjv"]["parameters"]


def test_unknown_names_get_a_suggestion():
    with pytest.raises(ValueError, match="Did you mean 'elf_b_de_en'"):
        ELFGenerator.from_preset("elf_b_deen")
    with pytest.raises(ValueError, match="no preset named 'something'"):
        ELFBackbone.from_preset("something")
    with pytest.raises(ValueError, match="`preset` must be"):
        ELFGenerator.from_preset("ftp://somewhere")


@pytest.mark.parametrize(
    ("name", "epochs", "warmup", "total"),
    [
        ("elf_b_owt", 5, 9500, 95_000),
        ("elf_l_owt", 3, 9500, 57_000),
        ("elf_b_de_en", 100, 5000, 880_000),
        ("elf_b_xsum", 100, 5000, 40_000),
    ],
)
def test_recipes_are_the_published_ones(name, epochs, warmup, total):
    recipe = TrainingRecipe.from_preset(name)
    assert (recipe.epochs, recipe.batch_size, recipe.learning_rate) == (epochs, 512, 2e-3)
    assert recipe.epochs * recipe.steps_per_epoch == total
    optimizer = recipe.optimizer()
    assert isinstance(optimizer, Muon)
    assert optimizer.global_clipnorm == 1.0 and optimizer.ema_momentum == 0.9999
    schedule = optimizer.get_config()["learning_rate"]["config"]
    assert (schedule["peak"], schedule["warmup_steps"]) == (2e-3, warmup)


def test_recipe_of_another_batch_and_in_compile():
    recipe = TrainingRecipe.from_preset("elf_b_owt", batch_size=64, num_rows=6400)
    assert recipe.learning_rate == 2.5e-4 and recipe.steps_per_epoch == 100
    recipe = TrainingRecipe.from_preset("elf_b_xsum", warmup_epochs=0.5)
    assert recipe.warmup_steps is None
    model = ELFGenerator.from_preset("elf_nano_kjv", load_weights=False)
    model.compile(optimizer=recipe)
    assert model.optimizer.get_config()["learning_rate"]["config"]["warmup_steps"] == 200


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TrainingRecipe.from_preset("elf_b_pd_owt"), "It was distilled"),
        (lambda: TrainingRecipe.from_preset("elf_b_xs"), "Did you mean"),
        (lambda: TrainingRecipe.from_preset("elf_b_owt", batch=3), "unknown arguments"),
        (lambda: TrainingRecipe.from_preset("elf_b_owt", batch_size=0), "`batch_size`"),
        (lambda: TrainingRecipe(epochs=1, num_rows=9), "One of `warmup_steps`"),
    ],
)
def test_mistakes_in_recipes(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_architectures_are_three():
    assert sorted(ARCHITECTURES) == ["elf_b", "elf_l", "elf_m"]
