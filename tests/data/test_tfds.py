"""TFDS: data sets of our own on disk, published ones by name, and all of it without TensorFlow."""

import contextlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import pytest

from keras_elf.data import load_dataset
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
def pairs(tfds, tmp_path_factory):
    """The directory of a builder with two splits, as TFDS itself writes it."""
    directory = tmp_path_factory.mktemp("tfds")
    records = [{"q": f"q{i}", "a": f"ü {i}", "ids": [i, 7]} for i in range(12)]
    # `tfds.dataset_builders.store_as_tfds_dataset` does the same, but imports TensorFlow.
    from tensorflow_datasets.core import dataset_metadata

    features = tfds.features.FeaturesDict(
        {
            "q": tfds.features.Text(),
            "a": tfds.features.Text(),
            "ids": tfds.features.Tensor(shape=(None,), dtype=np.int64),
        }
    )

    class Builder(tfds.core.GeneratorBasedBuilder, skip_registration=True):
        VERSION = tfds.core.Version("1.0.0")

        @classmethod
        def get_metadata(cls):
            # TFDS would look for files beside the class's module.
            return dataset_metadata.DatasetMetadata(description=None, citation=None, tags=[])

        def _info(self):
            return tfds.core.DatasetInfo(builder=self, features=features, disable_shuffling=True)

        def _split_generators(self, dl_manager):
            return {"train": enumerate(records), "test": enumerate(records[:3])}

        def _generate_examples(self):
            raise NotImplementedError("the splits above are whole")

    Builder.name = "my_pairs"
    builder = Builder(data_dir=directory / "data", file_format="array_record")
    builder.download_and_prepare()
    return records, str(builder.data_path)


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
    assert not list(tmp_path.iterdir())
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


def test_reading_never_loads_tensorflow(pairs, tmp_path):
    code = (
        "import sys\n"
        "from keras_elf.data import load_dataset\n"
        "from tests.data.letters import Letters\n"
        f"data = load_dataset({pairs[1]!r}, Letters(), 4, batch_size=2, target='ids')\n"
        "assert len(data) > 0 and data[0]['token_ids'].shape == (2, 4)\n"
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
