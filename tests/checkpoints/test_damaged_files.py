"""Sound files with something broken in them: read in unchanged shape, or refused in words."""

import collections
import random
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_elf.checkpoints.opening import open_checkpoint
from tests.conftest import REFERENCE

pytestmark = pytest.mark.backend_free

TORCH = REFERENCE / "torch" / "torch_checkpoint" / "checkpoint_3"
MSGPACK = REFERENCE / "jax" / "flax_msgpack_checkpoint" / "checkpoint_19000"
ORBAX = REFERENCE / "jax" / "flax_checkpoint" / "checkpoint_19000"
# Every kind of file in an orbax directory.
PARTS = ["manifest.ocdbt", "_METADATA"] + [
    str(max((ORBAX / folder).iterdir(), key=lambda file: file.stat().st_size).relative_to(ORBAX))
    for folder in ("d", "ocdbt.process_0/d")
]


def shapes(path):
    """How often raw or EMA weights have an array of a shape and dtype, all of them read."""
    found = collections.Counter()
    for kind, weights in open_checkpoint(path).weights.items():
        for reference in weights.values():
            array = reference.read()
            assert (array.shape, array.dtype) == (reference.shape, reference.dtype)
            found[kind, array.shape, array.dtype] += 1
    return found


def check(path, sound):
    """What opens has arrays of the sound file, no others; the damage may be in their names."""
    try:
        read = shapes(path)
    except ValueError as error:
        assert "Cannot read the checkpoint" in str(error)
        return False
    assert not read - sound
    return True


@pytest.fixture(scope="module", params=[TORCH, MSGPACK], ids=["torch", "msgpack"])
def one_file(request, tmp_path_factory):
    copied = tmp_path_factory.mktemp("one") / "file"
    return request.param.read_bytes(), copied, shapes(request.param)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    copied = tmp_path_factory.mktemp("many") / "orbax"
    shutil.copytree(ORBAX, copied)
    return copied, shapes(ORBAX)


def test_cut_off(one_file):
    data, path, _ = one_file
    for size in random.Random(0).sample(range(len(data)), 20):
        path.write_bytes(data[:size])
        with pytest.raises(ValueError, match="Cannot read the checkpoint"):
            open_checkpoint(path)


@pytest.mark.parametrize("part", PARTS)
def test_cut_off_in_a_directory(directory, part):
    copied, _ = directory
    data = (ORBAX / part).read_bytes()
    # In data files the bytes at the end may belong to nobody any more.
    for size in random.Random(0).sample(range(len(data) // 2), 5):
        (copied / part).write_bytes(data[:size])
        with pytest.raises(ValueError, match="Cannot read the checkpoint"):
            shapes(copied)
    (copied / part).write_bytes(data)


# Structure lies at the ends of the files, numbers in between.
EDITS = st.lists(
    st.tuples(
        st.integers(0, 30_000) | st.integers(-18_000, -1) | st.integers(), st.integers(1, 255)
    ),
    min_size=1,
    max_size=3,
)


def edited(data, edits):
    data = bytearray(data)
    for place, flipped in edits:
        data[place % len(data)] ^= flipped
    return bytes(data)


@settings(max_examples=25, deadline=None)
@given(EDITS)
def test_flipped_bits(one_file, edits):
    data, path, sound = one_file
    path.write_bytes(edited(data, edits))
    check(path, sound)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(PARTS), EDITS)
def test_flipped_bits_in_a_directory(directory, part, edits):
    copied, sound = directory
    data = (ORBAX / part).read_bytes()
    (copied / part).write_bytes(edited(data, edits))
    check(copied, sound)
    (copied / part).write_bytes(data)


def test_every_byte_of_the_index_is_protected(directory):
    """A flip in the manifest or in a node is found by its checksum."""
    copied, sound = directory
    for part in ("manifest.ocdbt", PARTS[2]):
        data = (ORBAX / part).read_bytes()
        for place in random.Random(1).sample(range(len(data)), 8):
            (copied / part).write_bytes(edited(data, [(place, 1)]))
            assert not check(copied, sound)
        (copied / part).write_bytes(data)
    assert check(copied, sound)
