"""The package as a whole: a light import, names that exist, classes that serialise."""

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

HEAVY = ("keras_hub", "tensorflow", "tensorflow_text", "sentencepiece", "rich")
LIGHT = ("checks", "flow", "layers", "objectives", "optimizers", "samplers")


def loaded_after(*modules):
    """Which of `HEAVY` are there after importing `modules` in a fresh process."""
    code = (
        "import importlib, json, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        f"print(json.dumps([m for m in {HEAVY!r} if sys.modules.get(m)]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def allowed():
    # TensorFlow is there because Keras runs on it.
    return {"tensorflow"} if keras.backend.backend() == "tensorflow" else set()


def test_importing_the_package_is_light():
    assert set(loaded_after("keras_elf")) <= allowed()


def test_parts_need_keras_alone():
    assert set(loaded_after(*(f"keras_elf.{name}" for name in LIGHT))) <= allowed()


def test_models_bring_keras_hub():
    # The other tests of imports would notice a name that is wrong.
    assert "keras_hub" in loaded_after("keras_elf.models")


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
    "GenerationState",
    "MaskedTokenModel",
    "ParameterAveraging",
    "SampleNoise",
    "Sampler",
    "SamplingState",
    "TokenBatches",
}


def test_public_classes_are_registered():
    found = set()
    for cls in public_classes():
        if cls.__name__ in UNREGISTERED:
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
