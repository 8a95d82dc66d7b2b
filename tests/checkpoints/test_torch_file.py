"""Files of `torch.save`: same names and numbers as PyTorch itself reads."""

import struct
import tracemalloc

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_elf.checkpoints.names import to_variables
from keras_elf.checkpoints.opening import open_checkpoint
from tests.checkpoints import torch_builder as build
from tests.conftest import REFERENCE

pytestmark = pytest.mark.backend_free

TOY = REFERENCE / "torch" / "torch_checkpoint"


@pytest.fixture(scope="module")
def toy():
    return open_checkpoint(TOY / "checkpoint_3")


def _arrays(references):
    return {name: reference.read() for name, reference in references.items()}


def _state_dict(tmp_path, pickles, storages, wrap=build.mapping):
    path = tmp_path / "weights"
    return open_checkpoint(build.torch_file(path, build.program(wrap(pickles)), storages)).weights


def test_toy_checkpoint(toy):
    assert (toy.format, toy.step, set(toy.weights)) == ("torch", 3, {"raw", "ema"})
    assert toy.path == TOY / "checkpoint_3"


def test_directory_opens_its_checkpoint(toy):
    found = open_checkpoint(TOY)
    assert (found.path, found.step) == (toy.path, 3)


@pytest.mark.parametrize("kind", ["raw", "ema"])
def test_names_are_those_of_the_variables(toy, kind, reference):
    flax = {k.removeprefix("params/"): v for k, v in reference("jax/weights").items()}
    shapes = {k: v.shape for k, v in to_variables(flax).items()}
    assert {k: v.shape for k, v in to_variables(_arrays(toy.weights[kind])).items()} == shapes


def test_ema_has_the_recorded_numbers(toy, reference):
    recorded = reference("torch/pd_teacher_weights")
    assert set(recorded) == set(toy.weights["ema"])
    for name, array in _arrays(toy.weights["ema"]).items():
        np.testing.assert_array_equal(array, recorded[name])
        assert array.dtype == toy.weights["ema"][name].dtype == np.float32
        assert array.shape == toy.weights["ema"][name].shape


def test_pytorch_reads_the_same(toy):
    import torch

    read = torch.load(TOY / "checkpoint_3", weights_only=True, mmap=True)
    for kind, key in (("raw", "params"), ("ema", "ema_params1")):
        ours = _arrays(toy.weights[kind])
        assert list(ours) == list(read[key])
        for name, tensor in read[key].items():
            np.testing.assert_array_equal(ours[name], tensor.numpy())


def test_what_pytorch_writes(tmp_path):
    import torch

    base = torch.arange(24.0).reshape(4, 6)
    tensors = {
        "parameter": torch.nn.Parameter(base.clone()),
        "half": base.half(),
        "bfloat16": base.bfloat16(),
        "double": base.double(),
        "bool": base > 5,
        "int": base.int(),
        "slice": base[1:3, 2:],
        "transposed": base.T,
        "stepped": base[::2, 1::2],
        "shared": base,
        "scalar": torch.tensor(3.0),
        "empty": torch.zeros(0, 5),
    }
    torch.save(tensors, tmp_path / "file")
    ours = _arrays(open_checkpoint(tmp_path / "file").weights["raw"])
    assert list(ours) == list(tensors)
    for name, value in tensors.items():
        value = value.detach()
        expected = value.float() if value.dtype == torch.bfloat16 else value
        np.testing.assert_array_equal(ours[name].astype(expected.numpy().dtype), expected)
    assert ours["bfloat16"].dtype == ml_dtypes.bfloat16


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_views_are_walked_by_their_strides(tmp_path_factory, data):
    """Any slice and transposition of an array reads as NumPy has it."""
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    base = np.arange(np.prod(sizes), dtype=np.int32).reshape(sizes)
    view = base.transpose(data.draw(st.permutations(range(len(sizes)))))
    view = view[tuple(slice(data.draw(st.integers(0, n - 1)), None, 2) for n in view.shape)]
    offset = (view.ctypes.data - base.ctypes.data) // 4
    stored = build.storage("7", "Int", base.size)
    pickled = build.tensor(stored, offset, view.shape, [s // 4 for s in view.strides])
    weights = _state_dict(tmp_path_factory.mktemp("view"), {"w": pickled}, {"7": base.tobytes()})
    read = weights["raw"]["w"].read()
    np.testing.assert_array_equal(read, view)
    # The caller's own: no view of a file that may go away.
    assert read.flags.writeable and read.flags.c_contiguous


@pytest.mark.parametrize("prefix", ["_orig_mod.", "module.", "module._orig_mod."])
def test_wrapper_prefixes_go_if_all_names_have_them(tmp_path, prefix):
    one = build.tensor(build.storage("0"))
    numbers = {"0": bytes(16)}
    weights = _state_dict(tmp_path, {f"{prefix}a": one, f"{prefix}b": one}, numbers)
    assert list(weights["raw"]) == ["a", "b"]
    weights = _state_dict(tmp_path, {f"{prefix}a": one, "b": one}, numbers)
    assert list(weights["raw"]) == [f"{prefix}a", "b"]


def test_training_state_without_ema(tmp_path):
    one = build.mapping({"a": build.tensor(build.storage("0"))})
    pickles = {"params": one, "step": build.integer(12)}
    path = build.torch_file(tmp_path / "f", build.program(build.mapping(pickles)), {"0": bytes(16)})
    opened = open_checkpoint(path)
    assert (opened.step, list(opened.weights)) == (12, ["raw"])


def test_zip64_sizes(tmp_path):
    """Archives over 4 GiB say so in an extra field; small ones may."""
    pickled = build.program(build.mapping({"a": build.tensor(build.storage("0"))}))
    wide = {"size": 0xFFFFFFFF, "packed": 0xFFFFFFFF}
    extra = struct.pack("<2H2Q", 1, 16, 16, 16)
    change = {"archive/data/0": wide | {"extra": b"FB\2\0zz" + extra}}
    numbers = np.arange(4, dtype="<f4")
    path = build.torch_file(tmp_path / "f", pickled, {"0": numbers.tobytes()}, central=change)
    read = open_checkpoint(path).weights["raw"]["a"].read()
    np.testing.assert_array_equal(read, numbers.reshape(2, 2))


def test_opening_reads_no_arrays(tmp_path):
    """A gigabyte of weights (a hole in the file) opens at once and reads in part."""
    size = 2**28
    stored = build.storage("0", size=size)
    pickled = build.program(
        build.mapping({"all": build.tensor(stored, 0, (size,), (1,)), "few": build.tensor(stored)})
    )
    empty = build.archive([("s/data.pkl", pickled), ("s/data/0", b"")])
    # Move the directory behind the hole.
    split = empty.index(b"PK\1\2")
    whole = {"s/data/0": {"size": 4 * size, "packed": 4 * size}}
    moved = build.archive(
        [("s/data.pkl", pickled), ("s/data/0", b"")],
        central=whole,
        end={"offset": split + 4 * size},
    )
    with open(tmp_path / "big", "wb") as file:
        file.write(moved[:split])
        file.seek(4 * size, 1)
        file.write(moved[split:])
    tracemalloc.start()
    weights = open_checkpoint(tmp_path / "big").weights["raw"]
    np.testing.assert_array_equal(weights["few"].read(), np.zeros((2, 2)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert weights["all"].shape == (size,)
    assert peak < 2**20
