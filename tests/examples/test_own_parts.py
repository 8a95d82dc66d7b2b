"""Every example of a part of one's own: a short run everywhere, the whole of it on PyTorch."""

import importlib
import json
import os
import pathlib
import re
import subprocess
import sys

import keras
import numpy as np
import pytest

FOLDER = pathlib.Path(__file__).parents[2] / "examples" / "own_parts"
# Least share of grammatical sentences; the docstrings tell what was measured.
SHARES = {"gru_network": 0.8, "dit_network": 0.8}
CLASSES = {
    "gru_network": "GRUNetwork",
    "dit_network": "DiT",
    "length_signal": "LengthSignal",
    "guidance_rule": "ProjectedGuidance",
    "sampler": "DDIMSampler",
    "time_sampler": "PowerTimes",
    "encoder": "NeighbourCounts",
}
OPTIONS = {"num_samples": 2, "num_steps": 2, "seed": 0, "verbose": False}


def module(name, monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module(name)


def fresh(code):
    """What a process of its own prints, as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", f"import tests.conftest, json, keras_elf\n{code}"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(FOLDER), "", *sys.path])},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def ids(model):
    return model.generate(**OPTIONS, return_token_ids=True).tolist()


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """Where the examples keep the text encoder and the default model that they share."""
    return tmp_path_factory.mktemp("own_parts")


@pytest.mark.parametrize("name", CLASSES)
def test_a_short_run(name, directory, monkeypatch, capsys):
    keras.utils.set_random_seed(0)
    example = module(name, monkeypatch)
    losses = []
    trained = example.grammar_model.train

    def watched(*args, **kwargs):
        losses.append(trained(*args, **kwargs).history["loss"])

    monkeypatch.setattr(example.grammar_model, "train", watched)
    monkeypatch.setattr(example.grammar_model, "NUM_SAMPLES", 4)
    elf = example.main(directory, quick=True)
    assert re.search(r"[\d.]+% grammatical", capsys.readouterr().out)
    # Six steps under fresh draws need not lower the loss; the whole runs show that it falls.
    assert all(np.isfinite(loss).all() for loss in losses)
    elf.save_to_preset(directory / name)
    (directory / f"{name}.json").write_text(json.dumps(ids(elf)))


def test_a_fresh_process_that_imports_the_modules(directory):
    made = [name for name in CLASSES if (directory / f"{name}.json").exists()]
    assert made
    code = (
        f"import {', '.join(made)}\n"
        f"load = lambda name: keras_elf.ELFGenerator.from_preset({str(directory)!r} + '/' + name)\n"
        f"found = {{n: load(n).generate(**{OPTIONS}, return_token_ids=True).tolist() "
        f"for n in {made}}}\n"
        "print(json.dumps(found))"
    )
    expected = {name: json.loads((directory / f"{name}.json").read_text()) for name in made}
    assert fresh(code) == expected


def test_without_the_import_the_error_names_the_module(directory):
    made = [name for name in CLASSES if (directory / f"{name}.json").exists()]
    assert made
    code = f"""errors = {{}}
for name in {made}:
    try:
        keras_elf.ELFGenerator.from_preset({str(directory)!r} + '/' + name)
    except ValueError as error:
        errors[name] = str(error)
print(json.dumps(errors))"""
    errors = fresh(code)
    assert list(errors) == made
    for name, message in errors.items():
        assert f"`import {name}`" in message and CLASSES[name] in message


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "torch", reason="minutes where it is compiled")
@pytest.mark.parametrize("name", SHARES)
def test_the_share_that_an_example_states(name, tmp_path_factory, monkeypatch, capsys):
    keras.utils.set_random_seed(0)
    whole = tmp_path_factory.getbasetemp() / "own_parts_whole"
    module(name, monkeypatch).main(whole)
    shares = re.findall(r"([\d.]+)% grammatical", capsys.readouterr().out)
    assert max(map(float, shares)) >= 100 * SHARES[name], shares
