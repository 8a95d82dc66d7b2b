"""`keras-elf train` from a text file to a preset, interrupted and resumed; then `evaluate`."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import keras
import numpy as np
import pytest

from keras_elf.cli.main import main
from keras_elf.models import ELFGenerator
from keras_elf.testing import TemplateGrammar
from tests.data import small

SMALL = [
    "vocabulary_size=200",
    "latent_dim=16",
    "depth=1",
    "hidden_size=16",
    "num_heads=2",
    "bottleneck_dim=8",
    "encoder_depth=1",
    "encoder_steps=2",
    "sequence_length=12",
    "batch_size=16",
    "warmup_steps=2",
    "sample_every_steps=4",
    "num_samples=1",
    "num_steps=1",
]


UNIGRAM = ["--tokenizer", "unigram"]
NANO = ["--preset", "elf_nano_kjv"]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "pairs.jsonl"
    rows = [{"word": verse.split()[0], "definition": verse} for verse in small.verses()[:64]]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


@pytest.fixture(scope="module")
def trained(pairs, tmp_path_factory):
    """A finished run of pairs: its directory."""
    output = tmp_path_factory.mktemp("trained") / "elf"
    arguments = ["train", "--data", str(pairs), "--output", str(output), "epochs=2", *SMALL]
    # Fewer rows than a batch, all of which count.
    few = pairs.with_name("few.jsonl")
    few.write_text("".join(pairs.read_text().splitlines(keepends=True)[:5]))
    assert main([*arguments, f"validation={few}"]) == 0
    return output


@pytest.mark.slow
def test_a_run_leaves_a_preset_a_log_and_samples(trained):
    model = ELFGenerator.from_preset(trained)
    assert model.latent_encoder.label_drop_probability == 0.1
    assert model.preprocessor.pad_with == "end" and 1 <= model.preprocessor.condition_length <= 6
    assert model.conditional and model.sampling.sampler.needs_noise is False
    assert model.objective.decode_corruption.noise_scale == 1.0
    text = model.generate(["And"], num_steps=1, verbose=False)
    assert len(text) == 1
    folder = trained.with_name("elf.training")
    with open(folder / "log.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert rows[-1]["step"] == "8" and float(rows[-1]["val_loss"]) > 0
    samples = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    assert [row["step"] for row in samples] == [4, 8]
    first = small.verses()[0]
    assert samples[0]["inputs"] == [first.split()[0]] and samples[0]["references"] == [first]
    assert 0 <= float(rows[-1]["reconstruction_accuracy"]) <= 1
    plan = json.loads((folder / "plan.json").read_text())
    assert plan["epochs"] == 2 and plan["packing"] == "lines"


@pytest.mark.slow
def test_a_directory_in_use_is_refused(trained, pairs, capsys):
    assert main(["train", "--data", str(pairs), "--output", str(trained), *SMALL]) == 2
    assert f"keras-elf train --resume --output {trained}" in capsys.readouterr().err


@pytest.mark.slow
def test_a_finished_run_may_be_resumed_and_does_nothing(trained, capsys):
    before = ELFGenerator.from_preset(trained).get_weights()
    assert main(["train", "--resume", "--output", str(trained), "--quiet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 8
    after = ELFGenerator.from_preset(trained).get_weights()
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.slow
def test_on_the_weights_of_a_preset(trained, pairs, tmp_path, capsys):
    # Progress goes to standard error: there is nothing but JSON on standard output.
    arguments = ["train", "--preset", str(trained), "--data", str(pairs), "--json"]
    out = ["--output", str(tmp_path / "more"), "epochs=1", "batch_size=16"]
    assert main([*arguments, *out]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 4
    again = ["--output", str(tmp_path / "new"), "epochs=1", "batch_size=16", "from_scratch=true"]
    assert main([*arguments, *again]) == 0
    one, two = (ELFGenerator.from_preset(tmp_path / name) for name in ("more", "new"))
    assert np.array_equal(one.encoder.get_weights()[0], two.encoder.get_weights()[0])
    first = one.backbone.get_weights()[0], two.backbone.get_weights()[0]
    assert not np.array_equal(*first)


@pytest.mark.slow
def test_evaluate_against_the_references(trained, pairs, capsys, tmp_path):
    report = tmp_path / "report.json"
    arguments = ["--preset", str(trained), "--data", str(pairs), "--limit", "4"]
    settings = ["--num-steps", "1", "--output", str(report), "--json"]
    assert main(["evaluate", *arguments, *settings]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads(report.read_text())
    assert printed["num_samples"] == 4 and 0 <= printed["figures"]["bleu"] <= 100
    assert 0 <= printed["figures"]["exact_match"] <= 1
    texts = tmp_path / "texts.txt"
    texts.write_text("the the the the the\n" * 4)
    assert main(["evaluate", "--texts", str(texts), "--judge", "none"]) == 0
    assert "repeat" in capsys.readouterr().out.lower()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "`data` must say"),
        (["train", "--data", "nowhere.txt"], "nowhere.txt"),
        (["train", "--data", "x.txt", "epoch=3"], "Did you mean 'epochs'"),
        (["train", "--resume", "--output", "nowhere"], "no training to go on with"),
        (["train", "--resume", "--data", "x"], "leave out --data"),
        (["train", "--resume", "epochs=3"], "leave out epochs=3"),
        (["train", "--resume", "--packing", "lines"], "leave out --packing"),
        (["train", "--data", "empty.txt"], "empty.txt"),
        (["train", "--data", "broken.txt"], "broken.txt"),
        (["train", "--data", "words.txt", "--preset", "elf_nano_kvj"], "Did you mean"),
        (
            ["train", "--data", "words.txt", "--preset", "elf_nano_kjv", "sequence_length=9"],
            "leave",
        ),
        (["train", "--data", "words.txt", *UNIGRAM, "vocabulary_size=30000"], "largest"),
        (["train", "--data", "words.txt", "target=txt"], "txt"),
        (["evaluate", "--texts", "nowhere.txt"], "nowhere.txt"),
        (["evaluate", "--texts", "empty.txt"], "no texts"),
        (["evaluate", "--texts", "broken.txt"], "not UTF-8"),
        (["evaluate", "--texts", "words.txt", "--num-samples", "3"], "--num-samples"),
        (["evaluate", "--texts", "bad.jsonl", "--judge", "none"], "bad.jsonl:1"),
        (["evaluate", "--preset", "elf_x"], "Presets"),
        (["evaluate", "--preset", "elf_nano_kjv", "--data", "words.txt"], "a condition and a"),
    ],
)
def test_mistakes_are_one_line_code_2_and_leave_nothing(
    tmp_path, monkeypatch, capsys, arguments, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "broken.txt").write_bytes(b"fine\n\xff\xfe\n")
    (tmp_path / "words.txt").write_text("some words\nto train on\n" * 40)
    (tmp_path / "bad.jsonl").write_text("{")
    before = sorted(tmp_path.iterdir())
    assert main(arguments) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("keras-elf")]
    assert len(said) == 1 and message in said[0]
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.slow
def test_ctrl_c_saves_and_a_resume_ends_as_if_nothing_had_happened(pairs, tmp_path):
    def run(*arguments, interrupt=False):
        command = [sys.executable, "-m", "keras_elf.cli.main", "train", *arguments]
        # One thread: for tensors of this size a second one only waits.
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )
        if interrupt:
            log = tmp_path / "cut.training/log.csv"
            while process.poll() is None and not (log.exists() and log.read_text().count("\n") > 1):
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=240)
        return process.returncode, said

    settings = ["--data", str(pairs), "epochs=8", *SMALL]
    settings[settings.index("sample_every_steps=4")] = "sample_every_steps=0"
    code, said = run(*settings, "--output", str(tmp_path / "cut"), interrupt=True)
    assert code == 130 and "keras-elf train --resume" in said, said
    assert not (tmp_path / "cut").exists()
    assert run("--resume", "--output", str(tmp_path / "cut"))[0] == 0
    assert run(*settings, "--output", str(tmp_path / "whole"))[0] == 0
    one, two = (
        ELFGenerator.from_preset(tmp_path / name).get_weights() for name in ("cut", "whole")
    )
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.slow
def test_ctrl_c_while_the_encoder_is_trained_loses_nothing(pairs, tmp_path):
    def start(*arguments):
        command = [sys.executable, "-m", "keras_elf.cli.main", "train", *arguments]
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env)

    settings = ["encoder_steps=80" if s.startswith("encoder_steps") else s for s in SMALL]
    output = tmp_path / "cut"
    process = start("--data", str(pairs), "--output", str(output), "epochs=1", *settings)
    said = ""
    for line in process.stderr:  # The stage shows how far it is.
        said += line
        if line.startswith("Epoch 3/"):
            process.send_signal(signal.SIGINT)
    assert process.wait(240) == 130, said
    assert "Stopped at step" in said and f"keras-elf train --resume --output {output}" in said
    folder = tmp_path / "cut.training"
    assert len(list((folder / "encoder").glob("step-*.checkpoint"))) == 1
    vocabulary = (folder / "tokenizer.model").read_bytes()
    process = start("--resume", "--output", str(output))
    said = process.communicate(timeout=240)[1]
    assert process.returncode == 0, said
    # It went on, and did not begin again.
    assert "Epoch 1/20" not in said and "Epoch 20/20" in said
    assert not (folder / "encoder").exists()
    assert ELFGenerator.from_preset(output).preprocessor.tokenizer.proto == vocabulary


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "torch", reason="minutes; one backend shows it")
def test_a_file_of_sentences_becomes_a_model_that_writes_sentences(tmp_path, capsys):
    grammar = TemplateGrammar()
    data, output = tmp_path / "sentences.txt", tmp_path / "elf"
    data.write_text("\n".join(grammar.sentences(3000, seed=0)) + "\n")
    assert main(["train", "--data", str(data), "--output", str(output)]) == 0
    said = capsys.readouterr().err
    assert "One text a row of 13 tokens" in said and "for the rest" in said
    assert main(["generate", "--preset", str(output), "--num-samples", "100", "--seed", "0"]) == 0
    texts = capsys.readouterr().out.splitlines()
    assert len(texts) == 100 and grammar.grammatical_share(texts) >= 0.85
