"""Text through pipes and files: lines, JSON, encodings; one command reads what another writes."""

import io
import json
import sys

import pytest

from keras_elf.cli.generate import _conditions
from keras_elf.cli.main import main
from keras_elf.data import load_dataset
from keras_elf.data.sources.lines import CsvSource
from keras_elf.testing import dummy_tokenizer

pytestmark = pytest.mark.backend_free


def piped(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def evaluated(capsys, *arguments):
    assert main(["evaluate", "--judge", "none", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_evaluate_reads_the_json_that_generate_writes(capsys, monkeypatch):
    texts = ["the fox sees a dog", "my owl waits"]
    lines = [json.dumps({"text": text, "seed": 3}) for text in texts]
    piped(monkeypatch, "\n".join(lines).encode())
    as_json = evaluated(capsys, "--texts", "-")
    piped(monkeypatch, "\n".join(texts).encode())
    assert as_json["figures"] == evaluated(capsys, "--texts", "-")["figures"]
    assert as_json["figures"]["mean_words"] == 4


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0b", "\x1c"])
def test_only_line_ends_end_a_line(tmp_path, capsys, monkeypatch, mark):
    text = f"one{mark}two"
    file = tmp_path / "texts.jsonl"
    file.write_text(json.dumps({"text": text}, ensure_ascii=False) + "\r\n", encoding="utf-8")
    assert evaluated(capsys, "--texts", str(file))["num_samples"] == 1
    plain = tmp_path / "texts.txt"
    plain.write_text(f"{text}\nthree\n", encoding="utf-8")
    options = ["--texts", str(plain), "--references", str(plain)]
    assert evaluated(capsys, *options)["num_samples"] == 2
    piped(monkeypatch, f"{text}\r\nthree".encode())

    class Options:
        condition, infill, num_samples = ["-"], None, None

    assert _conditions(Options) == [text, "three"]


def test_a_carriage_return_within_a_field_is_a_character_between_tabs(tmp_path):
    file = tmp_path / "pairs.tsv"
    file.write_bytes(b"text\tn\r\none\rtwo\t1\r\n")
    assert [record for _, record in CsvSource([str(file)])] == [{"text": "one\rtwo", "n": "1"}]


def test_quotation_marks_are_characters_between_tabs(tmp_path):
    rows = [
        "source\ttarget",
        "first\tone",
        '"He said\ttwo',
        "third\tthree",
        'he spoke"\tfour',
        '"Come," he said\tfive',
    ]
    file = tmp_path / "pairs.tsv"
    file.write_text("\n".join(rows), encoding="utf-8")
    words = [row.replace("\t", " ") for row in rows[1:]]
    options = {"condition": "source", "target": "target", "shuffle": False}
    data = load_dataset(str(file), dummy_tokenizer(words), 12, batch_size=5, **options)
    assert len(data) == 1 and data[0]["token_ids"].shape == (5, 12)


def test_a_lone_surrogate_is_told_with_its_line(tmp_path, capsys):
    file = tmp_path / "texts.jsonl"
    file.write_text('{"text": "good"}\n{"text": "bad \\ud800"}\n')
    assert main(["train", "--data", str(file), "--output", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "line 2" in said and "lone surrogates" in said
    assert main(["evaluate", "--judge", "none", "--texts", str(file)]) == 2
    said = capsys.readouterr().err
    assert f"{file}:2" in said and "lone surrogates" in said


def test_a_corpus_may_have_blank_lines_as_in_training(tmp_path, capsys):
    texts = tmp_path / "texts.txt"
    texts.write_text("one two\n")
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("one two\n\nthree four\n")
    report = evaluated(capsys, "--texts", str(texts), "--corpus", str(corpus))
    assert report["figures"]["openings_distance"] == 0.5


def test_letters_that_the_output_lacks_are_escaped_and_told_of(monkeypatch, capsys):
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="cp1252"))

    class Russian:
        def generate(self, **kwargs):
            return ["да"]

    monkeypatch.setattr("keras_elf.models.ELFGenerator.from_preset", lambda name: Russian())
    assert main(["generate", "--preset", "any", "--num-samples", "1"]) == 0
    assert out.getvalue() == b"\\u0434\\u0430\n"
    assert "PYTHONIOENCODING=utf-8" in capsys.readouterr().err
