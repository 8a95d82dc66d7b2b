"""TFDS: data sets of our own on disk, published ones by name, and all of it without TensorFlow."""

import contextlib
import json
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import pytest

from keras_elf.data import load_dataset, write_tfds
from keras_elf.data.sources.tfds_source import tensorflow_datasets
from tests.data.letters import Letters, text

pytest.importorskip("array_record")
pytestmark = pytest.mark.backend_free


class Absent:
    """An import finder to which TensorFlow was never installed."""

    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, *args):
        if name.partition(".")[0] not in ("tensorflow", "tensorflow_text", "tf2onnx"):
            return self.finder.find_spec(name, *args)

    def __getattr__(self, name):
        return getattr(self.finder, name)


@pytest.fixture(scope="module", autouse=True)
def tfds(tmp_path_factory):
    """The module. Where TensorFlow is hidden, hidden in a way that TFDS understands."""
    hidden = [name for name, module in sys.modules.items() if module is None]
    finders = list(sys.meta_path)
    if "tensorflow" in hidden:
        # TFDS takes every entry of `sys.modules` for a module.
        sys.meta_path[:] = [Absent(finder) for finder in finders]
        for name in hidden:
            del sys.modules[name]
    pytest.importorskip("tensorflow_datasets", exc_type=ImportError)
    before = tempfile.tempdir
    # TFDS leaves a directory behind for every builder that the tests make themselves.
    tempfile.tempdir = str(tmp_path_factory.mktemp("temporary"))
    with tensorflow_datasets() as module:
        yield module
    tempfile.tempdir = before
    sys.meta_path[:] = finders
    sys.modules.update(dict.fromkeys(hidden))


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """The directory of a builder with two splits, written from a jsonl file."""
    directory = tmp_path_factory.mktemp("tfds")
    records = [{"q": f"q{i}", "a": f"ü {i}", "ids": [i, 7]} for i in range(12)]
    file = directory / "pairs.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    examples = {"train": str(file), "test": iter(records[:3])}
    return records, write_tfds(directory / "data", "my_pairs", examples, description="Mine.")


def test_round_trip(tfds, pairs):
    records, path = pairs
    builder = tfds.builder_from_directory(path)
    assert builder.name == "my_pairs" and builder.info.description.strip() == "Mine."
    assert {k: v.num_examples for k, v in builder.info.splits.items()} == {"train": 12, "test": 3}
    data = builder.as_data_source(split="train")
    got = [
        {**e, "q": e["q"].decode(), "a": e["a"].decode(), "ids": e["ids"].tolist()} for e in data
    ]
    assert got == records
    assert data[11]["a"].decode() == "ü 11", "random access"


def test_a_builder_is_loaded(pairs):
    records, path = pairs
    data = load_dataset(path, Letters(), 8, batch_size=12, shuffle=False, condition="q", target="a")
    assert [text(row) for row in data[0]["token_ids"]][::11] == ["q0? 0|__", "q11? 11|"]
    assert data[0]["is_cond"].sum(axis=1).tolist() == [2] * 10 + [3] * 2
    for spec, split, number in ((path, "test", 3), (f"tfds:{path}", "train[:50%]", 6)):
        data = load_dataset(spec, Letters(), 8, batch_size=1, target="ids", split=split,
                            packing=False, shuffle=False)  # fmt: skip
        assert len(data) == number
        assert [b["token_ids"][0, :2].tolist() for b in data] == [
            r["ids"] for r in records[:number]
        ]


def test_nothing_is_left_in_the_temporary_directory(pairs, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    load_dataset(pairs[1], Letters(), 8, batch_size=1, target="a")
    write_tfds(tmp_path / "data", "some", ["ab"])
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    assert tempfile.gettempdir() == str(tmp_path)


def test_a_builder_is_found_by_name(pairs):
    path = pairs[1].removesuffix("/my_pairs/1.0.0")
    data = load_dataset("tfds:my_pairs", Letters(), 8, batch_size=1, data_dir=path, target="a")
    assert len(data) > 0


def test_tokens_of_a_builder_are_kept(pairs, tmp_path):
    for split, number in (("test", 3), ("train", 12), ("test", 3)):
        data = load_dataset(pairs[1], Letters(), 8, batch_size=1, target="a", split=split,
                            packing=False, cache_dir=tmp_path)  # fmt: skip
        assert len(data) == number
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    "name, features, condition",
    [
        ("xsum", ["document", "summary"], "document"),
        ("lm1b", ["text"], None),
        ("wmt14_translate/de-en", ["de", "en"], "de"),
        ("wmt14_translate/fr-en", ["en", "fr"], "fr"),
    ],
)
def test_published_names(tfds, tmp_path, name, features, condition):
    mock = tfds.testing.mock_data(num_examples=6, policy=tfds.testing.MockPolicy.USE_CODE)
    with mock, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*were too long.*")
        assert sorted(tfds.builder(name, data_dir=tmp_path).info.features) == features
        examples = list(tfds.data_source(name, split="train", data_dir=tmp_path))
        for spec in (name, f"tfds:{name}"):
            data = load_dataset(spec, Letters(), 200, batch_size=1, shuffle=False, packing=False,
                                data_dir=tmp_path)  # fmt: skip
            assert len(data) == 6
            target = (set(features) - {condition}).pop()
            for batch, example in zip(data, examples, strict=True):
                prefix = example[condition] if condition else ""
                assert text(batch["token_ids"][0]).rstrip("_") == f"{prefix}{example[target]}|"
                assert batch["is_cond"].sum() == len(prefix)
        reverse = load_dataset(name, Letters(), 200, batch_size=1, condition=target,
                               target=condition or target) if condition else None  # fmt: skip
        assert reverse is None or len(reverse) == 6


@pytest.mark.parametrize(
    "spec, kwargs, message",
    [
        ("tfds:no_such_set", {}, "TFDS cannot open 'no_such_set'"),
        ("tfds:openwebtext", {}, "no builder for it: pass the path of your copy"),
        ("openwebtext", {}, "no builder for it"),
        ("tfds:xsum", {}, "'xsum' is not prepared in .*download_and_prepare"),
        ("tfds:", {}, "TFDS cannot open ''"),
        (None, {"split": "valid"}, r"`split` must be one of \['train', 'test'\].*'valid'"),
        (None, {"split": "train[", "target": "a"}, "`split`|cannot be read"),
        (None, {}, r"`target` must be given: none of the fields \['a', 'ids', 'q'\]"),
        (None, {"target": "answer"}, "has no field 'answer'; its fields are"),
        (None, {"target": "a", "condition": "b"}, "has no field 'b'"),
    ],
)
def test_refused(pairs, tmp_path, spec, kwargs, message):
    kwargs = {"data_dir": tmp_path, **kwargs}
    with pytest.raises(ValueError, match=message) as caught:
        load_dataset(spec or pairs[1], Letters(), 8, batch_size=1, **kwargs)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "examples, kwargs, message",
    [
        ([], {}, "`examples` holds no records"),
        ({"train": ["a"], "test": []}, {}, "holds no records in 'test'"),
        ([{"a": "x"}, {"b": "x"}], {}, r"entry 1: the fields are \['b'\], .* \['a'\]"),
        ([{"a": "x"}, {"a": [1]}], {}, "entry 1: 'a' is token ids, in the first record text"),
        ([{"a": None}], {}, "entry 0: 'a' is null"),
        ([{"a": {"b": 1}}], {}, "entry 0: 'a' must be text or a flat list"),
        ([{3: "x"}], {}, "entry 0: must be a dict with names"),
        (["a"], {"name": "My set"}, "`name` must be in snake_case"),
        (["a"], {"version": "1"}, "`version` must be like '1.0.0'"),
        ({"a b": ["a"]}, {}, "A split's name must be one word"),
    ],
)
def test_writing_refused(tmp_path, examples, kwargs, message):
    kwargs = {"name": "mine", **kwargs}
    with pytest.raises(ValueError, match=message):
        write_tfds(tmp_path, kwargs.pop("name"), examples, **kwargs)
    assert not list(tmp_path.rglob("*.array_record*")), "nothing half written stays"


def test_an_existing_data_set_is_never_replaced(pairs):
    with pytest.raises(ValueError, match="exists already"):
        write_tfds(pairs[1].removesuffix("/my_pairs/1.0.0"), "my_pairs", ["a"])


def test_bare_records_have_fields(tfds, tmp_path):
    path = write_tfds(tmp_path, "texts", ["ab", "cd"])
    assert load_dataset(path, Letters(), 3, batch_size=2)[0]["token_ids"].shape == (2, 3)
    path = write_tfds(tmp_path, "ids", [[5, 6], np.array([7])])
    data = load_dataset(path, Letters(), 5, batch_size=1)
    assert data[0]["token_ids"].tolist() == [[5, 6, 1, 7, 1]]


def test_writing_and_reading_never_load_tensorflow(tmp_path):
    code = (
        "import sys\n"
        "from keras_elf.data import load_dataset, write_tfds\n"
        "from tests.data.letters import Letters\n"
        f"path = write_tfds({str(tmp_path)!r}, 'mine', [{{'text': 'abc'}}] * 4)\n"
        "data = load_dataset(path, Letters(), 4, batch_size=2)\n"
        "assert data[1]['token_ids'].tolist() == [[68, 69, 70, 1]] * 2\n"
        "assert not [m for m in sys.modules if m.split('.')[0] == 'tensorflow']\n"
        "print('fine')\n"
    )
    environment = {
        "TMPDIR": str(tmp_path),
        "KERAS_BACKEND": "numpy",
        "PYTHONPATH": ":".join(filter(None, sys.path)),
    }
    with contextlib.suppress(KeyError):
        environment["PATH"] = __import__("os").environ["PATH"]
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert out.stdout.strip() == "fine", out.stderr[-2000:]
