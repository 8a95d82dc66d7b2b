"""The runner at its smallest, on the backend under test."""

import json
import subprocess
import sys
import types

import keras
import pytest

from benchmarks import __main__ as runner
from benchmarks import cases, memory, options, record

ARGUMENTS = ["--size", "tiny", "--repeats", "2", "--no-memory"]


def test_the_work_of_a_case_is_timed_counted_and_recorded(tmp_path, monkeypatch, capsys):
    def products(number):
        x = keras.ops.ones((64, 64))

        def work():
            for _ in range(number):
                result = keras.ops.matmul(x, x)
            return result

        return work

    made = {
        name: cases.Variant(lambda number=number: products(number), 2 * 64**3 * number, 100)
        for name, number in (("once", 1), ("ten times", 10))
    }
    fake = types.SimpleNamespace(ABOUT="products", variants=lambda settings: made)
    monkeypatch.setitem(cases.CASES, "encoder", fake)
    path = tmp_path / "figures.json"
    assert runner.main([*ARGUMENTS, "--case", "encoder", "--json", str(path)]) == 0
    assert "ten times" in capsys.readouterr().out
    once, ten = record.read(path)["figures"]
    assert ten["ratio"]["to"] == "once" and ten["ratio"]["median"] > 1.5
    for figure in (once, ten):
        assert figure["tokens_per_s"] == pytest.approx(100 / figure["time_s"]["median"])
        rate = figure["flops"] / figure["time_s"]["median"] / figure["matmul"]["flops_per_s"]
        assert figure["matmul_share"] == pytest.approx(rate)


@pytest.mark.slow
def test_a_case_gives_a_table_and_a_record(tmp_path, capsys):
    path = tmp_path / "figures.json"
    assert runner.main([*ARGUMENTS, "--case", "encoder", "--json", str(path)]) == 0
    assert "TransformerEncoder" in capsys.readouterr().out
    kept = record.read(path)
    assert kept["backend"] == keras.backend.backend()
    assert kept["machine"]["cores"] >= 1 and kept["versions"]["keras"] == keras.__version__
    t5, trained = kept["figures"]
    assert (t5["what"], trained["what"]) == ("T5", "TransformerEncoder")
    for figure in (t5, trained):
        assert figure["time_s"]["min"] <= figure["time_s"]["median"] <= figure["time_s"]["max"]
        assert figure["tokens_per_s"] == pytest.approx(320 / figure["time_s"]["median"])
    assert t5["ratio"]["median"] == 1 and trained["ratio"]["to"] == "T5"


def test_peak_memory_holds_what_a_call_makes_for_a_while():
    import numpy as np

    def make():
        def work():
            np.ones(8_000_000).sum()  # 64 MB

        return work

    found = memory.measure(make)
    if memory.device_peak() is None:
        assert 60e6 < found["call_bytes"] < 80e6


@pytest.mark.backend_free
def test_each_case_says_what_it_is_and_help_names_it():
    text = options.parser().format_help()
    for name, module in cases.CASES.items():
        assert name in text and module.ABOUT in text
        assert hasattr(module, "run") or hasattr(module, "variants")


@pytest.mark.backend_free
@pytest.mark.parametrize(
    "wrong", [["--repeats", "0"], ["--size", "huge"], ["--case", "unknown"], ["--batch", "-1"]]
)
def test_wrong_arguments_are_refused(wrong, capsys):
    with pytest.raises(SystemExit) as stop:
        runner.main(wrong)
    assert stop.value.code == 2
    assert wrong[0] in capsys.readouterr().err


@pytest.mark.backend_free
def test_another_backend_runs_in_a_child_without_the_parent_s_files(tmp_path, monkeypatch):
    seen = []

    def fake_run(command, env):
        seen.append((command, env["KERAS_BACKEND"]))
        path = command[command.index("--json") + 1]
        made = record.new(cases.Settings("tiny"), env["KERAS_BACKEND"], [])
        with open(path, "w") as file:
            json.dump(made, file)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", fake_run)
    path = tmp_path / "out.json"
    runner.main(["--size", "tiny", "--backend", "all", "--json", str(path)])
    assert [backend for _, backend in seen] == list(cases.BACKENDS)
    assert all(c[:5] == [sys.executable, "-m", "benchmarks", "--size", "tiny"] for c, _ in seen)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "out_jax.json",
        "out_tensorflow.json",
        "out_torch.json",
    ]


def test_what_was_measured_before_a_failure_is_kept(tmp_path, monkeypatch):
    def fails(settings):
        raise RuntimeError("no such device")

    good = types.SimpleNamespace(ABOUT="", run=lambda settings: [measured("encoder")])
    monkeypatch.setitem(cases.CASES, "encoder", good)
    monkeypatch.setitem(cases.CASES, "muon", types.SimpleNamespace(ABOUT="", run=fails))
    path = tmp_path / "figures.json"
    with pytest.raises(RuntimeError, match="no such device"):
        runner.main([*ARGUMENTS, "--case", "encoder", "--case", "muon", "--json", str(path)])
    assert [f["case"] for f in record.read(path)["figures"]] == ["encoder"]


def measured(case):
    time_s = {"median": 1.0, "min": 1.0, "max": 1.0, "n": 1}
    return {"case": case, "what": "all", "time_s": time_s}


@pytest.mark.backend_free
@pytest.mark.parametrize("content", ["", "{}", "[1]", "text"])
def test_a_file_that_holds_no_record_is_refused_before_the_work(tmp_path, content):
    path = tmp_path / "figures.json"
    path.write_text(content)
    with pytest.raises(ValueError, match="not a record"):
        runner.main([*ARGUMENTS, "--json", str(path)])
    assert path.read_text() == content


@pytest.mark.backend_free
def test_options_are_not_shortened(capsys):
    # A shortened one would reach the child that is to run on one backend.
    with pytest.raises(SystemExit):
        runner.main([*ARGUMENTS, "--back", "all"])
    assert "--back" in capsys.readouterr().err
