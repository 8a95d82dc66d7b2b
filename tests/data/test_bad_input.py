"""One clear line for everything that cannot be read as meant, and nothing left behind."""

import gzip
import io
import json
import lzma
import os
import tarfile

import numpy as np
import pytest

from keras_elf.data import load_dataset
from keras_elf.data.sources import files
from tests.data.letters import Letters
from tests.data.test_sources import save_to_disk, tar_bytes

pytestmark = pytest.mark.backend_free
LINK = tarfile.TarInfo("a.txt")
LINK.type, LINK.linkname = tarfile.SYMTYPE, "/etc/passwd"


def load(spec, **kwargs):
    return load_dataset(spec, Letters(), 4, **{"batch_size": 1, **kwargs})


def link():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(LINK)
    return out.getvalue()


def nested(depth):
    inner = {"a.txt": b"ab"}
    for _ in range(depth):
        inner = {"b_data.xz": tar_bytes(inner, "w:xz")}
    return tar_bytes(inner)


GOOD = b'{"text": "ab"}\n'
FILES = {
    "broken-utf8.txt": (b"ab\n\ncd\xff\n", r"broken-utf8.txt', line 3, byte 2: not UTF-8"),
    "utf16.txt": ("ab\n".encode("utf-16"), r"line 1, byte 0: not UTF-8"),
    "latin.jsonl": (GOOD + '{"text": "é"}'.encode("latin-1"), "line 2, byte 10: not UTF-8"),
    "empty.txt": (b"", "holds no text"),
    "empty.jsonl": (b"", "holds no text"),
    "empty.csv": (b"", "holds no text"),
    "blank.txt": (b"\n \n\t\n", "holds no text"),
    "bom-only.txt": (b"\xef\xbb\xbf", "holds no text"),
    "blank-fields.jsonl": (b'{"text": " "}\n', "all are blank"),
    "giant.txt": (b"a" * 3000, "giant.txt', line 1 is longer than"),
    "giant.jsonl": (GOOD + b'{"text": "' + b"a" * 3000, "giant.jsonl', line 2 is longer"),
    "giant.json": (b'["' + b"a" * 2000 + b'",\n"' + b"a" * 2000 + b'"]', "larger than .* MiB"),
    "cut.jsonl": (GOOD + b'{"text": "a', "cut.jsonl', line 2: not a JSON value .*Received"),
    "deep.jsonl": (b"[" * 1500, "line 1: not a JSON value"),
    "cut.json": (b'[{"text": "ab"}, {', "cut.json' is not valid JSON"),
    "missing.jsonl": (
        b'{"text": "ab"}\n{"txt": "cd"}\n',
        r"line 2: no field 'text'; there are \['txt'\]. Did you mean 'txt'\?",
    ),
    "unknown.jsonl": (b'{"body": "ab"}\n', r"line 1: `target` must be given: none of .*'body'"),
    "null.jsonl": (GOOD + b'{"text": null}\n', "line 2: 'text' is null"),
    "number.jsonl": (GOOD + b'{"text": 7}\n', r"line 2: 'text' must be text.*Received: 7 \(of"),
    "nested.jsonl": (b'{"text": ["ab", "cd"]}\n', "line 1: 'text' must be text or a flat list"),
    "ragged.jsonl": (b'{"text": [[1], [2, 3]]}\n', "line 1: 'text' must be text or a flat list"),
    "floats.jsonl": (b'{"text": [1.5, 2]}\n', "line 1: 'text' must be text or a flat list"),
    "bools.jsonl": (b'{"text": [true, false]}\n', "line 1: 'text' must be text or a flat list"),
    "mixed.jsonl": (GOOD + b'{"text": [5]}\n', "line 2: 'text' is token ids, where .* are text"),
    "texts-then-dict.jsonl": (b'"ab"\n{"text": "cd"}\n', "line 2: a dict among bare texts"),
    "dict-then-text.jsonl": (GOOD + b'"cd"\n', "line 2: must be a dict with the field 'text'"),
    "surrogate.jsonl": (GOOD + b'{"text": "\\ud800"}\n', "line 2: 'text' is not valid Unicode"),
    "too-large.jsonl": (b"[5]\n[5, 98]\n", r"line 2: .* ids in \[0, 98\). Received: 98 at index 1"),
    "negative.jsonl": (b"[5]\n[-1]\n", "line 2: .*Received: -1 at index 0"),
    "huge.jsonl": (b"[5]\n[99999999999999999999999]\n", "line 2: .*flat list of token ids"),
    "twice.csv": (b"text,text\na,b\n", "line 1: the header names a field twice"),
    "fields.csv": (b"text,n\nab,1\ncd\n", "line 3: 1 fields, where the header has 2"),
    "mac.csv": (b"text,n\rab,1\r", "mac.csv', line 1: a carriage return"),
    "quote.csv": (b'text,n\n"ab,1\n', "quote.csv', line 2: unexpected end of data"),
    "noheader.csv": (b"ab,1\ncd,2\n", "line 2: `target` must be given"),
    "cut.txt.gz": (gzip.compress(b"ab\n" * 500)[:-9], "cut.txt.gz' is truncated or damaged"),
    "no.txt.gz": (b"ab\n", "no.txt.gz' is truncated or damaged after line 0"),
    "cut.txt.xz": (lzma.compress(os.urandom(200))[:-30], "cut.txt.xz"),
    "no.txt.xz": (b"ab\n", "no.txt.xz' is truncated or damaged"),
    "bomb.txt.gz": (gzip.compress(b"ab\n" * 40000), "more than 20 times its size"),
    "what.bin": (b"ab", "kind of a file is told by its extension.*Received: '.bin'"),
    "what.parquet": (b"PAR1", "Received: '.parquet'"),
    "no.tar": (b"ab" * 600, "no.tar' is not a readable archive"),
    "cut.tar": (tar_bytes({"a.txt": b"ab" * 900})[:1000], "cut.tar' is not a readable archive"),
    "up.tar": (tar_bytes({"../a.txt": b"ab"}), r"up.tar', member '../a.txt' points outside"),
    "root.tar": (tar_bytes({"/etc/a.txt": b"ab"}), "points outside the archive"),
    "drive.tar": (tar_bytes({"C:\\a.txt": b"ab"}), "points outside the archive"),
    "link.tar": (link(), "is a link or a device"),
    "large.tar": (tar_bytes({"a.txt": b"a" * 3000}), "3000 bytes, more than a document may have"),
    "latin.tar": (tar_bytes({"a.txt": b"\xe9"}), "member 'a.txt': byte 0: not UTF-8"),
    "deep.tar": (nested(3), "nested too deeply"),
    "bomb.tar.xz": (
        lzma.compress(tar_bytes({f"{i}.txt": b"a" * 1900 for i in range(99)})),
        "bomb.tar.xz.*more than 20 times its size",
    ),
    "none.tar": (tar_bytes({"readme.md": b"ab"}), "holds no text"),
}


@pytest.fixture
def small_limits(monkeypatch):
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 2048)
    monkeypatch.setattr(files, "MAX_EXPANSION", 20)
    monkeypatch.setattr(files, "_FREE_BYTES", 2**16)


@pytest.mark.filterwarnings("ignore:.*blank entries.*")
@pytest.mark.parametrize("name", FILES)
def test_files(tmp_path, small_limits, name):
    content, message = FILES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        load(str(tmp_path / name), cache_dir=tmp_path / "cache")
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None
    left = [p for p in (tmp_path / "cache").iterdir()] if (tmp_path / "cache").exists() else []
    assert not left


@pytest.mark.parametrize(
    "spec, message",
    [
        ("nowhere.txt", "file does not exist: 'nowhere.txt'"),
        ("nowhere/*.txt", "pattern matches no file"),
        (["nowhere.jsonl"], "file does not exist"),
        (".", "is a directory, but neither"),
        ("", "must name a data set or a file"),
        ([], "holds no text"),
        (None, "an iterable of texts.*NoneType"),
        (7, "`spec` must be a name, a path or an iterable.*Received: 7"),
        ({"text": ["ab"]}, "`spec` must be a name.*dict"),
        ([None], "entry 0: 'record' is null"),
        (["ab", 3], "entry 1: 'record' must be text"),
        ([b"ab", b"\xff"], "entry 1: 'record' is not UTF-8"),
        (["ab", [3]], "entry 1: .* is token ids, where .* text"),
        ([[3], np.array([[3], [4]])], "entry 1: .* flat list"),
        ([[0, 0]], "all are blank"),
        ([{}], r"`target` must be given: none of the fields \[\]"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*blank entries.*")
def test_specs(spec, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        load(spec)


PAIR = [{"condition": "a", "target": "b"}]


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"target": "targt"}, "no field 'targt'.*Did you mean 'target'"),
        ({"target": 3}, "`target` must be the name of a field"),
        ({"target": None}, "`target` must be"),
        ({"condition": ""}, "`condition` must be"),
        ({"condition": "target", "target": "target"}, "must be different fields"),
        ({"packing": True}, "`packing` leaves no place for conditions"),
        ({"packing": "yes"}, "`packing` must be one of"),
        ({"segments": True}, "`segments` tells packed documents apart"),
        ({"condition": None, "add_end_token": False}, "`add_end_token` must be True"),
        ({"condition_length": 4}, "`condition_length` must be smaller"),
        ({"pad_with": "eos"}, "`pad_with` must be one of"),
        ({"max_examples": 0}, "`max_examples` must be"),
        ({"batch_size": 1.5}, "`batch_size` must be"),
        ({"vocabulary_size": 50}, "entry 0: .*vocabulary"),
        ({"seed": "0"}, "`seed` must be"),
    ],
)
def test_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        load(PAIR, **kwargs)


def test_more_arguments(tmp_path):
    with pytest.raises(TypeError, match="unknown arguments.*batchsize"):
        load(PAIR, batchsize=3)
    with pytest.raises(ValueError, match="`tokenizer` must be a keras_hub tokenizer"):
        load_dataset(PAIR, "t5", 4)
    with pytest.raises(ValueError, match="`sequence_length` must be given"):
        load_dataset(PAIR, Letters())
    with pytest.raises(ValueError, match="records are bare texts"):
        load(["ab"], condition="question")
    (tmp_path / "a.txt").write_text("ab")
    (tmp_path / "a.csv").write_text("text\nab\n")
    with pytest.raises(ValueError, match="`unit` must be one of"):
        load(tmp_path / "a.txt", unit="page")
    with pytest.raises(ValueError, match="files of different kinds"):
        load([tmp_path / "a.txt", tmp_path / "a.csv"])
    with pytest.raises(ValueError, match="`cache_dir` must be a directory"):
        load(["ab"], cache_dir=tmp_path / "a.txt")
    with pytest.raises(ValueError, match=r"fewer tokens \(3\) than one packed row"):
        load(["ab"])
    used = iter(["abc"])
    load(used)
    with pytest.raises(ValueError, match="holds no text"):
        load(used)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable(tmp_path):
    (tmp_path / "a.txt").write_text("ab")
    (tmp_path / "a.txt").chmod(0)
    with pytest.raises(ValueError, match="a.txt' cannot be read: Permission denied"):
        load(tmp_path / "a.txt")


def test_a_full_disk_is_said_and_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("keras_elf.data.token_store._Written._keep", full)
    with pytest.raises(OSError, match="cannot be written below `cache_dir`: .*No space left"):
        load(["ab"], cache_dir=tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())


def broken_arrow(directory, what):
    pa = pytest.importorskip("pyarrow")
    ids = pa.array([[5, 6], [7], None if what == "null" else [8]], pa.list_(pa.int32()))
    save_to_disk(directory, pa.table({"body" if what == "name" else "input_ids": ids}), "List", 1)
    data, state = directory / "data-00000-of-00001.arrow", directory / "state.json"
    if what == "cut":
        data.write_bytes(data.read_bytes()[:-300])
    elif what == "noise":
        data.write_bytes(b"noise" * 50)
    elif what == "missing":
        data.unlink()
    elif what == "json":
        state.write_text("{")
    elif what == "list":
        state.write_text("[]")
    elif what == "outside":
        state.write_text(json.dumps({"_data_files": [{"filename": "../a.arrow"}]}))
    elif what == "none":
        state.write_text(json.dumps({"_data_files": []}))
    elif what == "indices":
        state.write_text(json.dumps({"_indices_data_files": [{"filename": "a"}]}))


@pytest.mark.parametrize(
    "what, message",
    [
        ("cut", "is truncated or damaged|not a readable Arrow"),
        ("noise", "is not a readable Arrow stream"),
        ("missing", "that state.json names is missing"),
        ("json", "state.json' is not readable JSON"),
        ("list", "must hold a JSON object"),
        ("outside", "names a file outside the directory: '../a.arrow'"),
        ("none", "state.json names no data files"),
        ("indices", "holds a selection of rows as indices"),
        ("null", "row 2: 'input_ids' is null"),
        ("name", r"`target` must be given: none of the fields \['body'\]"),
    ],
)
def test_arrow(tmp_path, what, message):
    broken_arrow(tmp_path / "a", what)
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "a")
    if what == "cut":
        (tmp_path / "dataset_dict.json").write_text('{"splits": ["train"]}')
        with pytest.raises(ValueError, match=r"`split` must be one of \['train'\]"):
            load(tmp_path, split="test")
