"""msgpack files of flax: same names and numbers as flax wrote."""

import sys
import tracemalloc

import ml_dtypes
import msgpack
import numpy as np
import pytest

from keras_elf.checkpoints.names import to_variables
from keras_elf.checkpoints.opening import open_checkpoint
from tests.conftest import REFERENCE

pytestmark = pytest.mark.backend_free

TOY = REFERENCE / "jax" / "flax_msgpack_checkpoint"


def array(values, code=1):
    """An array or scalar as flax packs it."""
    fields = (values.shape, values.dtype.name, values.tobytes())
    return msgpack.ExtType(code, msgpack.packb(fields, use_bin_type=True))


def write(path, state):
    path.write_bytes(msgpack.packb(state))
    return path


@pytest.fixture(scope="module")
def toy():
    return open_checkpoint(TOY)


@pytest.fixture(scope="module")
def recorded():
    with np.load(REFERENCE / "jax" / "weights.npz") as archive:
        return {name.removeprefix("params/"): archive[name] for name in archive.files}


def test_toy_checkpoint(toy):
    assert (toy.format, toy.step, set(toy.weights)) == ("msgpack", 19000, {"raw", "ema"})
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


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int64", "float16", "float64", ml_dtypes.bfloat16]
)
def test_every_type_of_number(tmp_path, dtype):
    values = np.arange(6).reshape(2, 3).astype(dtype)
    opened = open_checkpoint(write(tmp_path / "f", {"params": {"a": {"b": array(values)}}}))
    read = opened.weights["raw"]["a/b"].read()
    np.testing.assert_array_equal(read, values)
    assert read.dtype == values.dtype
    assert opened.step is None


@pytest.mark.parametrize("step", [7, array(np.array(7)), array(np.array(7, "uint32"), code=3)])
def test_spellings_of_the_step(tmp_path, step):
    state = {"params": {"a": array(np.zeros(2))}, "step": step}
    assert open_checkpoint(write(tmp_path / "f", state)).step == 7


def test_bare_parameters(tmp_path):
    opened = open_checkpoint(write(tmp_path / "f", {"a": array(np.ones(2, np.float32))}))
    assert list(opened.weights) == ["raw"] and list(opened.weights["raw"]) == ["a"]


def test_arrays_that_flax_splits(tmp_path):
    values = np.arange(10, dtype=np.float32).reshape(2, 5)
    parts = [values.ravel()[:7], values.ravel()[7:]]
    split = {
        "__msgpack_chunked_array__": True,
        "shape": {"0": 2, "1": 5},
        "chunks": {str(i): array(part) for i, part in enumerate(parts)},
    }
    opened = open_checkpoint(write(tmp_path / "f", {"params": {"a": split}}))
    assert opened.weights["raw"]["a"].shape == (2, 5)
    np.testing.assert_array_equal(opened.weights["raw"]["a"].read(), values)


def test_opening_holds_one_array_at_a_time(tmp_path):
    state = {
        "opt_state": {str(i): array(np.zeros(2**16, np.float32)) for i in range(64)},
        "params": {"a": array(np.ones(3))},
    }
    path = write(tmp_path / "f", state)
    tracemalloc.start()
    opened = open_checkpoint(path)
    np.testing.assert_array_equal(opened.weights["raw"]["a"].read(), np.ones(3))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # One array is held at a time; the reader keeps a few megabytes besides.
    assert peak < path.stat().st_size / 3


def test_without_msgpack_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "msgpack", None)
    with pytest.raises(ImportError, match=r'pip install "keras-elf\[flax\]"'):
        open_checkpoint(TOY)
