"""Files made to do harm are refused in words, in little memory and time, and run nothing."""

import json
import pathlib
import subprocess
import sys

import pytest

from keras_elf.checkpoints.opening import open_checkpoint
from tests.checkpoints import hostile_msgpack, hostile_torch
from tests.conftest import REFERENCE

pytestmark = pytest.mark.backend_free

ROOT = pathlib.Path(__file__).parents[2]
TOYS = {
    "toy_torch": REFERENCE / "torch" / "torch_checkpoint",
    "toy_msgpack": REFERENCE / "jax" / "flax_msgpack_checkpoint",
}
MEMORY = 256 * 2**20


def written(data, message):
    return lambda path, canary: path.write_bytes(data) is not None and path, message


def link(target):
    def write(path, canary):
        path.mkdir()
        (path / "checkpoint_1").symlink_to(target)
        return path

    return write


OTHERS = {
    "empty": written(b"", "is empty"),
    "zeros": written(bytes(100), "none of its formats"),
    "text": written(b"hello", "none of its formats"),
    "web_page": written(b"<!DOCTYPE html>", "web page"),
    "lfs_pointer": written(b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    "hdf5": written(b"\x89HDF\r\n\x1a\n", "Keras weights file"),
    "safetensors": written((90).to_bytes(8, "little") + b'{"a":', "safetensors"),
    "empty_directory": (lambda path, canary: path.mkdir() or path, "no `checkpoint_<step>`"),
    "device": (lambda path, canary: pathlib.Path("/dev/zero"), "not a regular file"),
    "link_out_of_the_directory": (link("/etc/passwd"), "leaves its directory"),
    "link_to_nothing": (link("nothing"), "link to nothing"),
}
CASES = hostile_torch.CASES | hostile_msgpack.CASES | OTHERS


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """All files read by one process that may use little memory and has a minute."""
    directory = tmp_path_factory.mktemp("hostile")
    canary = directory / "canary"
    paths = {name: str(write(directory / name, canary)) for name, (write, _) in CASES.items()}
    task = {
        "root": str(ROOT),
        "memory": MEMORY,
        "paths": paths | {k: str(v) for k, v in TOYS.items()},
    }
    ran = subprocess.run(
        [sys.executable, str(pathlib.Path(__file__).with_name("read_alone.py"))],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout) | {"canary": canary.exists(), "paths": paths}


@pytest.mark.parametrize("name", CASES)
def test_refused(outcome, name):
    kind, message, seconds = outcome["results"][name]
    assert kind == "ValueError", (kind, message)
    assert CASES[name][1] in message
    # One message that names the file and stays readable.
    assert "Cannot read the checkpoint" in message and len(message) < 700
    # No case takes a second alone; this is for a busy machine.
    assert seconds < 15


@pytest.mark.parametrize("name", TOYS)
def test_sound_files_pass_the_same_limits(outcome, name):
    assert outcome["results"][name][:2] == ["read", ""]


def test_nothing_was_executed(outcome):
    assert not outcome["canary"]
    assert outcome["imported"] == []


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="no checkpoint at"):
        open_checkpoint(tmp_path / "nothing")
