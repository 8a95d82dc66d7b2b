"""The package as a whole: a light import, names that exist, classes that serialise."""

import dataclasses
import importlib
import inspect
import json
import os
import pkgutil
import subprocess
import sys

import keras
import pytest

import keras_elf

pytestmark = pytest.mark.without_tensorflow

HEAVY = ("keras_hub", "tensorflow", "tensorflow_text", "sentencepiece")
LIGHT = ("checks", "flow", "layers", "objectives", "optimizers", "samplers")


STAGES = {
    "package": ["keras_elf"],
    "parts": [f"keras_elf.{name}" for name in LIGHT],
    "models": ["keras_elf.models"],
}


@pytest.fixture(scope="module")
def loaded():
    """Which of `HEAVY` are there after each stage of imports in a fresh process."""
    code = (
        "import importlib, json, sys\n"
        f"for stage, names in {STAGES!r}.items():\n"
        "    for name in names: importlib.import_module(name)\n"
        f"    print(json.dumps([stage, [m for m in {HEAVY!r} if sys.modules.get(m)]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(map(json.loads, done.stdout.splitlines()))


@pytest.mark.parametrize("stage", ["package", "parts"])
def test_what_an_import_loads(loaded, stage):
    # TensorFlow may be there where Keras runs on it.
    allowed = {"tensorflow"} if keras.backend.backend() == "tensorflow" else set()
    assert set(loaded[stage]) <= allowed


def test_an_import_says_nothing_about_tensorflow():
    code = (
        "import keras_elf.models, keras_elf.testing as t\n"
        "t.dummy_tokenizer(['a b', 'b a']).tokenize(['a'])\n"
        "import importlib.util\n"
        "if importlib.util.find_spec('tensorflow'): import tensorflow"
    )
    if keras.backend.backend() == "tensorflow" or sys.modules.get("tensorflow", 1) is None:
        pytest.skip("Here TensorFlow is what was asked for, or hidden.")
    command, env = [sys.executable, "-c", code], dict(os.environ)
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "cuda" not in done.stderr and "oneDNN" not in done.stderr, done.stderr


def test_models_bring_keras_hub(loaded):
    # A name that is wrong in the list would go unnoticed above.
    assert "keras_hub" in loaded["models"]


@pytest.mark.parametrize("module", ["keras_elf", *(f"keras_elf.{m}" for m in keras_elf._MODULES)])
def test_all_names_exist(module):
    module = importlib.import_module(module)
    assert module.__all__ and len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None, name


def test_unknown_names():
    with pytest.raises(AttributeError, match="has no attribute 'Generator'"):
        keras_elf.Generator  # noqa: B018
    assert "ELFGenerator" in dir(keras_elf)
    assert keras_elf.ELFGenerator is keras_elf.models.ELFGenerator


def public_classes():
    for name in keras_elf._MODULES:
        module = importlib.import_module(f"keras_elf.{name}")
        for public in getattr(module, "__all__", ()):
            value = getattr(module, public)
            if inspect.isclass(value):
                yield value


# Bases without a configuration of their own, and what is made by code alone.
UNREGISTERED = {
    "Composition",
    "DecodeCorruption",
    "FitCallback",
    "FitRun",
    "GenerationState",
    "Guidance",
    "GuidanceScaleSampler",
    "MaskedTokenModel",
    "ParameterAveraging",
    "PositionTracker",
    "ResumableDataset",
    "RowSeedGenerator",
    "RunClock",
    "SampleNoise",
    "Sampler",
    "SamplingEngine",
    "SamplingState",
    "TemplateGrammar",
    "Term",
    "TextDataset",
    "TimeSampler",
    "TokenBatches",
    "Weighting",
}


def test_public_classes_are_registered():
    found = set()
    for cls in public_classes():
        # Records and exceptions are no parts of a model.
        if cls.__name__ in UNREGISTERED or dataclasses.is_dataclass(cls):
            continue
        if issubclass(cls, (Exception, tuple)):
            continue
        name = f"keras_elf>{cls.__name__}"
        assert keras.saving.get_registered_name(cls) == name
        assert keras.saving.get_registered_object(name) is cls
        assert "get_config" in dir(cls)
        found.add(cls.__name__)
    assert {"ELFBlock", "ELFGenerator", "ELFObjective", "Muon", "SDESampler"} <= found
    assert len(found) > 20


def test_public_things_are_documented():
    for cls in public_classes():
        assert inspect.getdoc(cls), cls.__name__
    for info in pkgutil.walk_packages(keras_elf.__path__, "keras_elf."):
        assert importlib.import_module(info.name).__doc__, info.name
