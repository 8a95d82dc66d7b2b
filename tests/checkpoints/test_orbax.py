"""Directories of orbax: same names and numbers as orbax wrote."""

import itertools
import json
import shutil
import sys
import zlib

import ml_dtypes
import numpy as np
import pytest

from keras_elf.checkpoints.binary import crc32c
from keras_elf.checkpoints.names import to_variables
from keras_elf.checkpoints.ocdbt import read_keys
from keras_elf.checkpoints.opening import open_checkpoint
from tests.checkpoints import orbax_builder as build
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


def _stored(value):
    return value if isinstance(value, bytes) else value.read()


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


def test_one_directory_an_array(tmp_path, toy, recorded):
    """The layout without a database: every key a file."""
    for key, value in read_keys(toy.path).items():
        if key.startswith(("params.", "step")):
            (tmp_path / key).parent.mkdir(exist_ok=True)
            (tmp_path / key).write_bytes(_stored(value))
    opened = open_checkpoint(tmp_path)
    assert (opened.step, list(opened.weights)) == (19000, ["raw"])
    for name, reference in opened.weights["raw"].items():
        np.testing.assert_array_equal(reference.read(), recorded[name])


@pytest.mark.parametrize("compressor", [None, "zlib", "gzip"])
@pytest.mark.parametrize("dtype", ["<f4", "<f2", "bfloat16", "|b1", "<i8"])
def test_types_and_chunks(tmp_path, compressor, dtype):
    """Chunks of a grid are put together; those at the edges are stored whole."""
    whole = np.arange(6 * 4).reshape(6, 4)
    whole = whole.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    packer = zlib.compressobj(wbits=31 if compressor == "gzip" else 15)
    values = {
        "params.a/.zarray": build.zarray(
            (5, 3), (2, 2), dtype, compressor and {"id": compressor, "level": 1}
        )
    }
    for i, j in itertools.product(range(3), range(2)):
        chunk = whole[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].tobytes()
        packed = packer.copy()
        packed = packed.compress(chunk) + packed.flush()
        values[f"params.a/{i}.{j}"] = packed if compressor else chunk
    opened = open_checkpoint(build.directory(tmp_path / "c", values))
    read = opened.weights["raw"]["a"].read()
    assert read.dtype == whole.dtype
    np.testing.assert_array_equal(read, whole[:5, :3])


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


def test_without_zstd_the_extra_is_named(monkeypatch):
    for name in ("compression", "compression.zstd", "backports", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r'pip install "keras-elf\[orbax\]"'):
        open_checkpoint(TOY)


def test_checksum():
    # The check value that definitions of CRC-32C give.
    assert crc32c(b"123456789") == 0xE3069283


@pytest.mark.parametrize("node_bytes", [600, 10**6])
def test_tensorstore_lists_the_same(tmp_path, node_bytes):
    """Databases of several levels, versions and kinds of value."""
    tensorstore = pytest.importorskip("tensorstore")
    store = tensorstore.KvStore.open(
        {
            "driver": "ocdbt",
            "base": f"file://{tmp_path}/",
            "config": {"max_decoded_node_bytes": node_bytes, "max_inline_value_bytes": 16},
        }
    ).result()
    expected = {f"params.block_{i}.w/{i % 7}": bytes([i % 256]) * (i % 40) for i in range(300)}
    for start in range(0, 300, 100):
        with tensorstore.Transaction() as transaction:
            for key in list(expected)[start : start + 100]:
                store.with_transaction(transaction)[key] = expected[key]
    assert {key: _stored(value) for key, value in read_keys(tmp_path).items()} == expected
    newest = tensorstore.ocdbt.dump(tensorstore.KvStore.open(f"file://{tmp_path}/").result())
    # The small nodes do make a tree.
    assert (newest.result()["versions"][-1]["root_height"] > 0) == (node_bytes == 600)


def test_tensorstore_writes_arrays_that_read_the_same(tmp_path):
    tensorstore = pytest.importorskip("tensorstore")
    values = np.random.default_rng(0).normal(size=(7, 5)).astype("float32")
    spec = {
        "driver": "zarr",
        "kvstore": {"driver": "ocdbt", "base": f"file://{tmp_path}/", "path": "params.a/"},
        "metadata": {"chunks": [3, 5], "compressor": {"id": "zstd"}},
    }
    array = tensorstore.open(
        spec, create=True, dtype=tensorstore.float32, shape=values.shape
    ).result()
    array[...] = values
    (tmp_path / "_METADATA").write_text(build.metadata([("params", "a")]))
    read = open_checkpoint(tmp_path).weights["raw"]["a"].read()
    np.testing.assert_array_equal(read, values)


def test_metadata_keeps_names_with_dots_apart(tmp_path):
    values = {"params.a.b/.zarray": build.zarray((1,)), "params.a.b/0": bytes(4)}
    opened = open_checkpoint(build.directory(tmp_path / "c", values, names=[("params", "a.b")]))
    assert list(opened.weights["raw"]) == ["a.b"]
    listed = json.loads((opened.path / "_METADATA").read_text())["tree_metadata"]
    assert len(listed) == 1
