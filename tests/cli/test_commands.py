"""`generate`, `info` and what all commands share: one-line mistakes, exit codes, pipes."""

import io
import json
import subprocess
import sys

import pytest

from keras_elf.cli.main import main

NANO = ["generate", "--preset", "elf_nano_kjv", "--num-steps", "1"]


def piped(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_generate_writes_a_text_a_line(capsys):
    assert main([*NANO, "--num-samples", "2", "--seed", "3", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 2 and all(row["seed"] == 3 for row in rows)
    assert (
        main([*NANO, "--num-samples", "2", "--seed", "3", "--gamma", "1.5", "--sampler=sde"]) == 0
    )
    assert capsys.readouterr().out.splitlines() == [row["text"] for row in rows]


@pytest.mark.slow
def test_a_drawn_seed_is_told(capsys):
    assert main([*NANO, "--num-samples", "1", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert main([*NANO, "--num-samples", "1", "--seed", str(row["seed"])]) == 0
    assert capsys.readouterr().out == row["text"] + "\n"


@pytest.mark.slow
def test_conditions_and_holes_come_through_a_pipe(capsys, monkeypatch):
    piped(monkeypatch, "\ufeffAnd God said\n\nThe LORD\n".encode())
    assert main([*NANO, "--condition", "-", "--seed", "0", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["input"] for row in rows] == ["And God said", "The LORD"]
    piped(monkeypatch, b"The <mask:3> of the LORD\n")
    assert main([*NANO, "--infill", "-", "--infill", "<mask> the earth", "--seed", "0"]) == 0
    texts = capsys.readouterr().out.splitlines()
    assert texts[0].startswith("The") and texts[0].endswith("of the LORD")
    assert texts[1].endswith("the earth")


def test_info_lists_and_tells(capsys):
    assert main(["info", "--json"]) == 0
    assert {"elf_b_owt", "elf_nano_kjv"} <= json.loads(capsys.readouterr().out).keys()
    assert main(["info", "elf_b_owt", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["parameters"], facts["rows"]["sequence_length"]) == (104_579_940, 1024)
    assert facts["recipe"]["epochs"] == 5 and facts["sampler"]["gamma"] == 1.5
    assert main(["info"]) == 0 and main(["info", "presets/elf_nano_kjv"]) == 0
    assert "elf_b_de_en" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: COMMAND"),
        (["genrate"], "invalid choice: 'genrate'"),
        (["generate"], "required: --preset"),
        (["generate", "--preset"], "expected one argument"),
        (["generate", "--prest", "x", "--preset", "y"], "did you mean --preset?"),
        (["generate", "--preset", "x", "--preset", "y"], "--preset is given twice"),
        ([*NANO, "--num-steps=2"], "--num-steps is given twice"),
        ([*NANO[:3], "--num-steps", "abc"], "whole number >= 1. Received: 'abc'"),
        ([*NANO[:3], "--num-steps", "0"], "whole number >= 1. Received: 0"),
        ([*NANO, "--gamma", "nan"], "finite number >= 0"),
        ([*NANO, "--seed", "-1"], "whole number in [0,"),
        ([*NANO, "--seed", "1.5"], "whole number"),
        ([*NANO, "--condition", "a", "--infill", "<mask>"], "not allowed with"),
        ([*NANO, "more"], "no use for 'more'"),
        (["info", "a", "b"], "no use for 'b'"),
        (["demo", "--steps", "none"], "whole number >= 1"),
    ],
)
def test_wrong_usage_is_one_line_and_code_2(arguments, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    said = capsys.readouterr().err
    assert stopped.value.code == 2
    assert message in said and said.startswith("keras-elf") and said.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*NANO, "--sampler", "dpm"], "`sampler` must be one of"),
        (["generate", "--preset", "elf_nano_kvj"], "Did you mean 'elf_nano_kjv'"),
        (["generate", "--preset", "/nowhere/at/all"], "/nowhere/at/all"),
        (["generate", "--preset", ""], "`preset` must be"),
        (["generate", "--preset", "hf://a b"], "hf://owner/name"),
        ([*NANO, "--gamma", "1"], "--gamma belongs to --sampler sde"),
        ([*NANO, "--gamma", "1", "--sampler", "ode"], "--gamma belongs to --sampler sde"),
        ([*NANO, "--condition", ""], "no condition was given"),
        ([*NANO, "--condition", "x", "--num-samples", "2"], "one for each"),
        ([*NANO, "--infill", "no hole"], "must have one"),
        ([*NANO, "--infill", "<mask:99>"], "more than the 24 tokens"),
        (["info", "elf_x"], "Presets:"),
        (["info", "tests"], "config.json"),
    ],
)
def test_mistakes_are_one_line_and_code_2(arguments, message, capsys):
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert message in said and said.startswith(f"keras-elf {arguments[0]}: ")
    assert said.count("\n") == 1 and "Traceback" not in said


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe\x00"])
def test_pipes_that_hold_no_text(content, capsys, monkeypatch):
    piped(monkeypatch, content)
    assert main([*NANO, "--condition", "-"]) == 2
    assert "standard input is" in capsys.readouterr().err


def test_help_without_loading_a_backend():
    code = (
        "import sys; from keras_elf.cli.main import main\n"
        "for c in ([], ['train'], ['generate'], ['info'], ['import'], ['demo']):\n"
        "    try: main([*c, '--help'])\n"
        "    except SystemExit as stopped: assert stopped.code == 0\n"
        "print([m for m in ('keras', 'jax', 'torch', 'tensorflow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
    assert "keras-elf generate --preset elf_b_de_en --condition -" in done.stdout
    assert "epochs=null" in done.stdout and "from_scratch=false" in done.stdout


OWN = """
import keras_elf

@keras_elf.samplers.register("backwards_test")
class Backwards(keras_elf.samplers.ODESampler):
    pass
"""


@pytest.fixture
def known_samplers():
    from keras_elf.samplers.sampler import SAMPLERS

    before = dict(SAMPLERS)
    yield
    for name in set(SAMPLERS) - set(before):
        del SAMPLERS[name]


def test_parts_of_ones_own(known_samplers, tmp_path, monkeypatch, capsys):
    (tmp_path / "own_parts_of_a_test.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    words = [*NANO, "--num-samples", "1", "--seed", "0"]
    own = ["--import", "own_parts_of_a_test.py", "--sampler", "backwards_test"]
    assert main([*words, *own]) == 0
    own = capsys.readouterr().out
    assert main([*words, "--sampler", "ode"]) == 0
    assert capsys.readouterr().out == own
    assert main([*words, "--import", "no_such_module"]) == 2
    assert "--import no_such_module failed: ModuleNotFoundError" in capsys.readouterr().err


def test_the_names_of_samplers_are_those_of_the_library():
    from keras_elf import samplers
    from keras_elf.cli.sampling import SAMPLERS

    ours = {n for n, cls in samplers.sampler.SAMPLERS.items() if cls.__module__[:9] == "keras_elf"}
    assert set(SAMPLERS) == ours


@pytest.mark.parametrize("value", ["label", "label=many", "=3"])
def test_signals_that_are_none(value, capsys):
    assert main([*NANO, "--num-samples", "1", "--signal", value]) == 2
    assert "keras-elf generate:" in capsys.readouterr().err


def test_a_signal_that_the_network_does_not_read(capsys):
    assert main([*NANO, "--num-samples", "1", "--signal", "label=3"]) == 2
    assert "label" in capsys.readouterr().err
