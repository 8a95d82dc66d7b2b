"""`keras-elf import`, as a program and as a function."""

import json
import pathlib

import pytest

from keras_elf.cli.main import main
from keras_elf.models import ELFBackbone

pytestmark = pytest.mark.backend_free

CHECKPOINT = pathlib.Path(__file__).parents[1] / "reference/torch/torch_checkpoint/checkpoint_3"


def test_converts_and_says_what_it_did(tmp_path, capsys):
    out = str(tmp_path / "preset")
    assert main(["import", str(CHECKPOINT), out]) == 0
    said = capsys.readouterr().out
    assert "torch checkpoint of step 3, ema weights, 72,269 parameters" in said
    assert f'keras_elf.ELFBackbone.from_preset("{out}")' in said
    assert ELFBackbone.from_preset(out).depth == 4
    assert main(["import", str(CHECKPOINT.parent), out, "--weights", "raw", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["weights"] == "raw"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "out"], "nowhere"),
        ([str(CHECKPOINT), "out", "--preset", "elf_b_own"], "Did you mean 'elf_b_owt'"),
        ([str(CHECKPOINT), "out", "--preset", "elf_b_owt"], "depth is 4"),
        ([str(CHECKPOINT), ""], "must name a directory"),
    ],
)
def test_mistakes_get_one_line_and_code_2(tmp_path, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["import", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith("keras-elf import: ") and message in said
    assert list(tmp_path.iterdir()) == []
