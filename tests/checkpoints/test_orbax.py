"""Directories of orbax: same names and numbers as orbax wrote."""

import json
import shutil
import sys

import ml_dtypes
import numpy as np
import pytest
import tensorstore

from keras_elf.checkpoints.names import to_variables
from keras_elf.checkpoints.opening import open_checkpoint
from tests.conftest import REFERENCE

pytestmark = pytest.mark.backend_free

TOY = REFERENCE / "jax" / "flax_checkpoint"


@pytest.fixture(scope="module")
def toy():
    return open_checkpoint(TOY)


@pytest.fixture(scope="module")
def recorded():
    with np.load(REFERENCE / "jax" / "weights.npz") as archive:
        return {name.removeprefix("params/"): archive[name] for name in archive.files}


def listed(*names):
    """`_METADATA` for tuples of names."""
    tree = {
        str(name): {
            "key_metadata": [{"key": part, "key_type": 2} for part in name],
            "value_metadata": {"value_type": "np.ndarray", "skip_deserialize": False},
        }
        for name in names
    }
    return json.dumps({"tree_metadata": tree, "use_zarr3": False})


def write(path, arrays, database=True, chunks=(2, 2)):
    """A checkpoint as orbax lays it out, written by TensorStore."""
    file = {"driver": "file", "path": f"{path}/"}
    for name, values in arrays.items():
        where = {"driver": "ocdbt", "base": file} if database else file
        inside = f"{name}/" if database else f"{path}/{name}/"
        spec = {
            "driver": "zarr",
            "kvstore": {**where, "path": inside},
            "metadata": {"chunks": chunks[: values.ndim], "compressor": {"id": "zstd"}},
        }
        dtype = tensorstore.dtype(values.dtype)
        array = tensorstore.open(spec, create=True, dtype=dtype, shape=values.shape).result()
        array[...] = values
    (path / "_METADATA").write_text(listed(*(tuple(name.split(".")) for name in arrays)))
    return path


def test_toy_checkpoint(toy):
    assert (toy.format, toy.step, set(toy.weights)) == ("orbax", 19000, {"raw", "ema"})
    assert toy.path == TOY / "checkpoint_19000"


@pytest.mark.parametrize("kind", ["raw", "ema"])
def test_names_and_numbers(toy, recorded, kind):
    assert set(toy.weights[kind]) == set(recorded)
    for name, reference in toy.weights[kind].items():
        read = reference.read()
        assert (read.shape, read.dtype) == (reference.shape, reference.dtype)
        expected = recorded[name] if kind == "raw" else recorded[name] * 0.9 + 0.01
        np.testing.assert_allclose(read, expected, rtol=0 if kind == "raw" else 1e-6, atol=1e-9)
        assert read.flags.writeable
    assert len(to_variables({k: r.read() for k, r in toy.weights[kind].items()})) == len(recorded)


def test_without_the_list_of_names(tmp_path, toy):
    """Older checkpoints have no `_METADATA`; the keys say the same."""
    copied = tmp_path / "checkpoint_19000"
    shutil.copytree(toy.path, copied)
    (copied / "_METADATA").unlink()
    assert open_checkpoint(copied).weights.keys() == toy.weights.keys()
    assert set(open_checkpoint(tmp_path).weights["ema"]) == set(toy.weights["ema"])


@pytest.mark.parametrize("database", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float16", ml_dtypes.bfloat16, "bool", "int64"])
def test_both_layouts_and_all_types(tmp_path, database, dtype):
    """Chunks of a grid are put together, whether in a database or a file a chunk."""
    values = np.arange(15).reshape(5, 3).astype(dtype)
    path = write(tmp_path, {"params.a": values, "step": np.asarray(7)}, database)
    for listed_there in (True, False):
        if not listed_there:
            (path / "_METADATA").unlink()
        opened = open_checkpoint(path)
        assert (opened.step, list(opened.weights)) == (7, ["raw"])
        read = opened.weights["raw"]["a"].read()
        assert read.dtype == values.dtype
        np.testing.assert_array_equal(read, values)


def test_a_part_that_is_missing_is_an_error(tmp_path):
    path = write(tmp_path, {"params.a": np.ones((4, 4), "float32")}, database=False)
    (path / "params.a" / "1.0").unlink()
    with pytest.raises(ValueError, match="Cannot read the checkpoint"):
        open_checkpoint(path).weights["raw"]["a"].read()


def test_links_into_the_blobs_of_a_hub_cache_are_followed(tmp_path, toy):
    """`snapshots/<revision>/...` of a cache are links to `blobs/<hash>`."""
    snapshot = tmp_path / "snapshots" / "abc" / "checkpoint_1"
    (tmp_path / "blobs").mkdir()
    shutil.copytree(toy.path, snapshot)
    for number, file in enumerate(f for f in sorted(snapshot.rglob("*")) if f.is_file()):
        file.rename(tmp_path / "blobs" / str(number))
        file.symlink_to(tmp_path / "blobs" / str(number))
    opened = open_checkpoint(snapshot.parent)
    assert opened.path == snapshot
    opened.weights["ema"]["proj_bias"].read()


def test_without_tensorstore_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorstore", None)
    with pytest.raises(ImportError, match=r'pip install "keras-elf\[orbax\]"'):
        open_checkpoint(TOY)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", "lists no arrays"),
        ('{"tree_metadata": {"a": 1}}', "lists no arrays"),
        (listed(("params", 3)), "not text"),
        (listed(("params", "b")), "TensorStore says"),
        (listed(("params",)), "TensorStore says"),
    ],
)
def test_a_list_that_does_not_fit_is_refused(tmp_path, text, message):
    path = write(tmp_path, {"params.a": np.ones((2, 2), "float32")})
    (path / "_METADATA").write_text(text)
    with pytest.raises(ValueError, match=message):
        open_checkpoint(path)


def test_metadata_keeps_names_with_dots_apart(tmp_path):
    path = write(tmp_path, {"params.a.b": np.ones(2, "float32")})
    (path / "_METADATA").write_text(listed(("params", "a.b")))
    assert list(open_checkpoint(path).weights["raw"]) == ["a.b"]
