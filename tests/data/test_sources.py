"""Every kind of source gives the rows that it holds."""

import bz2
import gzip
import io
import json
import lzma
import pathlib
import tarfile
import types

import numpy as np
import pytest

from keras_elf.data import load_dataset, wordnet_definitions
from tests.data.letters import Letters, text

pytestmark = pytest.mark.backend_free
PAIRS = [{"condition": "ab", "target": "xyz"}, {"condition": "c", "target": "uvwxyzuvw"}]


def rows(spec, length=8, **kwargs):
    """All rows as text, and what of each is condition."""
    kwargs = {"batch_size": 1, "shuffle": False, **kwargs}
    data = load_dataset(spec, kwargs.pop("tokenizer", Letters()), length, **kwargs)
    batches = list(data)
    return [text(b["token_ids"][0]) for b in batches], [int(b["is_cond"].sum()) for b in batches]


def write(path, content, opener=open):
    with opener(path, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return str(path)


def lines(records):
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.mark.filterwarnings("ignore:.*were too long.*")
def test_pairs_make_prefix_and_target():
    assert rows(PAIRS) == (["abxyz|__", "cuvwxyzu"], [2, 1])
    assert rows(PAIRS, pad_with="end")[0][0] == "abxyz|||"
    assert rows(PAIRS, condition_length=1) == (["axyz|___", "cuvwxyzu"], [1, 1])
    assert rows(PAIRS, add_end_token=False)[0][0] == "abxyz___"
    data = load_dataset(PAIRS, Letters(), 8, batch_size=2, shuffle=False, pad_with="end")
    assert data[0]["is_valid"].sum(axis=1).tolist() == [6, 8]
    with pytest.warns(UserWarning, match="1 of 2 texts were too long"):
        rows(PAIRS)


def test_pairs_without_their_condition_are_packed():
    assert rows(PAIRS, 7, condition=None) == (["xyz|uvw", "xyzuvw|"[:7]], [0, 0])
    assert rows(PAIRS[:1], condition=None, packing=False) == (["xyz|____"], [0])
    assert rows(PAIRS[:1], condition="target", target="condition") == (["xyzab|__"], [3])


@pytest.mark.parametrize(
    "record",
    [
        {"input_ids": [6, 7], "condition_input_ids": [8]},
        {"definition": "#$", "word": "%"},
        {"summary": b"#$", "document": np.str_("%")},
        {"target": np.array([6, 7]), "condition": (8,)},
    ],
)
def test_usual_names_are_found(record):
    assert rows([{"other": 3, **record}], 4) == (["%#$|"], [1])


@pytest.mark.parametrize(
    "ending, opener",
    [("", open), (".gz", gzip.open), (".xz", lzma.open), (".bz2", bz2.open), (".zst", None)],
)
def test_compressed(tmp_path, ending, opener):
    if opener is None:
        zstd = pytest.importorskip("backports.zstd")
        opener = zstd.open
    path = write(tmp_path / f"a.jsonl{ending}", lines([{"text": "abc"}, {"text": "de"}]), opener)
    assert rows(path, 7) == (["abc|de|"], [0])
    path = write(tmp_path / f"a.txt{ending}", "abc\n\n \nde", opener)
    assert rows(pathlib.Path(path), 7) == (["abc|de|"], [0])


def test_json_list_and_many_files(tmp_path):
    path = write(tmp_path / "a.json", json.dumps([{"text": "abc"}, {"text": "de"}], indent=1))
    assert rows(path, 7) == (["abc|de|"], [0])
    assert rows(write(tmp_path / "c.json", lines([{"text": "abc"}])), 4) == (["abc|"], [0])
    for name in "12":
        write(tmp_path / f"part{name}.txt", f"{name}{name}\n")
    assert rows(str(tmp_path / "part*.txt"), 3)[0] == ["11|", "22|"]
    listed = [str(tmp_path / "part2.txt"), tmp_path / "part1.txt"]
    assert rows(listed, 3)[0] == ["22|", "11|"]
    assert rows(["11", "22"], 3)[0] == ["11|", "22|"], "a list of texts is not a list of files"


def test_units_of_text(tmp_path):
    path = write(tmp_path / "a.txt", "\ufeffab\r\ncd\r\n\r\n\r\nef\r\n")
    assert rows(path, 3)[0] == ["ab|", "cd|", "ef|"]
    assert rows(path, 4, unit="paragraph")[0] == ["ab?c", "d|ef"]
    assert rows(path, 4, unit="file", keep_remainder=True)[0][0] == "ab??"


def test_csv(tmp_path):
    path = write(tmp_path / "a.csv", '\ufeffq,a,n\n"x,y","1\n2",7\n\nz,3,8\n')
    assert rows(path, 8, condition="q", target="a") == (["x,y1?2|_", "z3|_____"], [3, 1])
    path = write(tmp_path / "a.tsv.gz", "text\tn\na b\t1\n", gzip.open)
    assert rows(path, 4)[0] == ["a b|"]


def test_iterables():
    assert rows((t for t in ["ab", "c"]), 5)[0] == ["ab|c|"]
    assert rows(({"target": t, "condition": "q"} for t in ["ab", "c"]), 4) == (
        ["qab|", "qc|_"], [1, 1])  # fmt: skip
    assert rows(np.array([[5, 6, 0], [7, 0, 0]]), 5)[0] == ['"#|$|']
    assert rows([b"ab"], 3)[0] == ["ab|"]
    assert rows(["ab"] * 9, 3, max_examples=2)[0] == ["ab|"] * 2
    with pytest.warns(UserWarning, match="2 blank entries were left out"):
        assert rows([{"text": "ab"}, {"text": ""}, {"text": " \n"}], 3)[0] == ["ab|"]


def test_a_preprocessor_gives_the_layout():
    preprocessor = types.SimpleNamespace(
        tokenizer=Letters(), sequence_length=6, condition_length=1, pad_with="end",
        add_end_token=True, vocabulary_size=500, generate_preprocess=None,
    )  # fmt: skip
    pair = [{"condition": [7], "target": [450]}]
    data = load_dataset(pair, preprocessor, batch_size=1)
    assert data[0]["token_ids"].tolist() == [[7, 450, 1, 1, 1, 1]]
    data = load_dataset(pair, preprocessor, 4, batch_size=1, pad_with="pad")
    assert data[0]["token_ids"].tolist() == [[7, 450, 1, 0]]


def tar_bytes(members, mode="w"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def test_openwebtext_is_read_from_its_archives(tmp_path):
    parts = [tar_bytes({f"{n}-a.txt": f"{n}a".encode(), f"{n}-b.txt": b"\xef\xbb\xbfb\n"}, "w:xz")
             for n in "12"]  # fmt: skip
    names = [f"urlsf_subset00-{n}_data.xz" for n in "12"]
    whole = tar_bytes({f"openwebtext/{n}": p for n, p in zip(names, parts, strict=True)}, "w:xz")
    path = write(tmp_path / "openwebtext.tar.xz", whole)
    assert rows(path, 6)[0] == ["1a|b?|", "2a|b?|"]
    assert rows(write(tmp_path / names[0], parts[0]), 6)[0] == ["1a|b?|"]
    plain = tar_bytes({"d/a.txt": b"ab", "d/readme.md": b"no", "d/._a.txt": b"\xff"})
    assert rows(write(tmp_path / "a.tar", plain), 3)[0] == ["ab|"]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        ["openwebtext.tar.xz", names[0], "a.tar"]
    ), "nothing is unpacked"


def save_to_disk(directory, table, kind, files=2):
    """An Arrow directory in the layout of `datasets`' `save_to_disk`."""
    pa = pytest.importorskip("pyarrow")
    directory.mkdir(parents=True)
    features = {
        name: {"feature": {"dtype": "int32", "_type": "Value"}, "_type": kind}
        for name in table.column_names
    }
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    table = table.replace_schema_metadata(metadata)
    names = [f"data-{i:05d}-of-{files:05d}.arrow" for i in range(files)]
    step = -(-len(table) // files)
    for index, name in enumerate(names):
        part = table.slice(index * step, step)
        with pa.OSFile(str(directory / name), "wb") as sink:
            with pa.ipc.new_stream(sink, part.schema) as writer:
                writer.write_table(part, max_chunksize=2)
    state = {
        "_data_files": [{"filename": n} for n in names],
        "_fingerprint": "0",
        "_split": "train",
    }
    (directory / "state.json").write_text(json.dumps(state))
    (directory / "dataset_info.json").write_text(json.dumps({"features": features, "splits": {}}))


@pytest.mark.parametrize("kind", ["List", "Sequence"])
@pytest.mark.parametrize("integer", ["int32", "int64", "uint16"])
def test_arrow_directories_of_both_ages(tmp_path, kind, integer):
    pa = pytest.importorskip("pyarrow")
    ids = pa.array([[5, 6], [7], [8, 9], [10]], pa.list_(getattr(pa, integer)()))
    conditions = pa.array([[11], [12], [13], [14]], pa.list_(getattr(pa, integer)()))
    save_to_disk(tmp_path / "owt", pa.table({"input_ids": ids}), kind)
    data = load_dataset(tmp_path / "owt", Letters(), 5, batch_size=2, shuffle=False)
    assert data[0]["token_ids"].tolist() == [[5, 6, 1, 7, 1], [8, 9, 1, 10, 1]]
    table = pa.table({"input_ids": ids, "condition_input_ids": conditions, "extra": ["x"] * 4})
    save_to_disk(tmp_path / "pairs" / "test", table, kind)
    (tmp_path / "pairs" / "dataset_dict.json").write_text('{"splits": ["test"]}')
    data = load_dataset(tmp_path / "pairs", Letters(), 4, batch_size=4, shuffle=False, split="test")
    assert data[0]["token_ids"].tolist() == [[11, 5, 6, 1], [12, 7, 1, 0], [13, 8, 9, 1],
                                             [14, 10, 1, 0]]  # fmt: skip
    assert data[0]["is_cond"].sum(axis=1).tolist() == [1, 1, 1, 1]
    text_only = pa.table({"text": ["ab", "cd"]})
    save_to_disk(tmp_path / "text", text_only, kind)
    assert rows(str(tmp_path / "text"), 3)[0] == ["ab|", "cd|"]


class Counting(Letters):
    calls = 0

    def tokenize(self, texts):
        Counting.calls += 1
        return super().tokenize(texts)


def test_cache(tmp_path):
    path, cache = tmp_path / "a.txt", tmp_path / "cache"

    def load(tokenizer=None, **kwargs):
        before = Counting.calls
        found = rows(str(path), 3, tokenizer=tokenizer or Counting(), cache_dir=cache, **kwargs)[0]
        return found, Counting.calls > before

    write(path, "ab\ncd\n")
    assert load() == (["ab|", "cd|"], True)
    assert load() == (["ab|", "cd|"], False)
    assert load(max_examples=1) == (["ab|"], True)
    assert load(packing=False) == (["ab|", "cd|"], True)
    write(path, "ab\ncx\n")
    assert load() == (["ab|", "cx|"], True), "other contents"
    assert load(tokenizer=Counting(first=31))[1], "another tokenizer"
    data = load_dataset(str(path), Counting(), 3, batch_size=1, cache_dir=cache)
    assert isinstance(data.rows.documents.tokens, np.memmap)
    assert data.rows.documents.tokens.dtype == np.uint16
    assert not [p for p in cache.iterdir() if "tmp" in p.name]
    for store in cache.iterdir():
        (store / "target.npy").write_bytes((store / "target.npy").read_bytes()[:-2])
    with pytest.raises(ValueError, match="are damaged .* Delete the directory"):
        load()


def test_an_interrupted_cache_leaves_nothing(tmp_path):
    write(tmp_path / "a.jsonl", lines([{"text": "ab"}] * 300) + "{")
    with pytest.raises(ValueError, match="line 301: not a JSON value"):
        rows(str(tmp_path / "a.jsonl"), cache_dir=tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())
    with pytest.warns(UserWarning, match="can be read only once"):
        rows(iter(["ab"]), 3, cache_dir=tmp_path / "cache")
    assert rows(["ab"], 3, cache_dir=tmp_path / "cache")[0] == ["ab|"]


def test_wordnet():
    words, definitions = wordnet_definitions()
    assert len(words) == len(definitions) == len(set(words)) == 20000
    assert all(20 <= len(d) <= 80 for d in definitions)
    assert words[:2] != sorted(words[:2]) or words[2:4] != sorted(words[2:4])
    assert dict(zip(words, definitions, strict=True))["river"].startswith("a large natural stream")
