"""Handles and listings: what is asked for, out of what is there."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_elf.hub import HubError, newest_checkpoint, snapshot, split_handle
from tests.hub.conftest import REPO

pytestmark = pytest.mark.backend_free

PRESET = {
    "config.json": b"{}",
    "task.json": b"{}",
    "metadata.json": b"{}",
    "model.weights.h5": b"w" * 9000,
    "assets/tokenizer/vocabulary.spm": b"v",
    "README.md": b"#",
    "training.log": b"...",
}


def test_split_handle():
    assert split_handle("hf://user/name") == ("user/name", None)
    assert split_handle("hf://user/name@v1.0") == ("user/name", "v1.0")
    assert split_handle("hf://user/name@refs/pr/3") == ("user/name", "refs/pr/3")
    assert split_handle("hf://user/name/") == ("user/name", None)


@pytest.mark.parametrize(
    "handle",
    [
        "user/name",
        "hf://",
        "hf://a/b/c",
        "hf://a/../b",
        "hf://a/b@",
        "hf://a/b@../c",
        "kaggle://a/b",
    ]
    + ["hf://a/b?x", "hf://a b/c", None, 3],
)
def test_what_is_no_handle(handle):
    with pytest.raises(ValueError, match="`handle` must look like 'hf://owner/name'"):
        split_handle(handle)


def test_snapshot_of_a_preset(hub):
    hub.update("user/preset", PRESET)
    path = snapshot("hf://user/preset")
    found = {
        os.path.relpath(os.path.join(folder, file), path)
        for folder, _, files in os.walk(path)
        for file in files
    }
    assert found == set(PRESET) - {"README.md", "training.log"}
    hub.update("user/preset", {"config.json": b"tagged"}, revision="v2")
    with open(os.path.join(snapshot("hf://user/preset@v2"), "config.json")) as file:
        assert file.read() == "tagged"


def test_no_preset(hub):
    hub.update("user/other", {"model.safetensors": b"x", "README.md": b"#"})
    with pytest.raises(HubError, match="no config.json. It holds: 'README.md', 'model.safet") as no:
        snapshot("hf://user/other")
    assert "bare names" not in str(no.value)
    hub.update("embedded-language-flows/ELF-B-de-en-torch", {"checkpoint_9": b"x"})
    with pytest.raises(HubError, match=r'bare names.*from_preset\("elf_b_de_en"\).*import_check'):
        snapshot("hf://embedded-language-flows/ELF-B-de-en-torch")
    hub.update(REPO, {"checkpoint_9": b"x"})
    with pytest.raises(HubError, match="bare names"):
        snapshot(f"hf://{REPO}")


def test_newest_checkpoint():
    assert newest_checkpoint(["checkpoint_9", "checkpoint_10", "checkpoint_latest"]) == [
        "checkpoint_10"
    ]
    orbax = ["checkpoint_20/_METADATA", "checkpoint_20/d/0", "checkpoint_3/_METADATA", "README"]
    assert newest_checkpoint(orbax) == ["checkpoint_20/_METADATA", "checkpoint_20/d/0"]
    assert newest_checkpoint(["a/checkpoint_1", "b/checkpoint_2"]) == ["b/checkpoint_2"]
    assert newest_checkpoint(["config.json", "checkpoint_", "my_checkpoint_3"]) == []
    with pytest.raises(HubError, match="Several checkpoints are of step 2"):
        newest_checkpoint(["a/checkpoint_2", "b/checkpoint_2"])


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(st.integers(0, 10**9), st.integers(0, 3), min_size=1, max_size=6))
def test_newest_checkpoint_is_the_highest_step_whole(steps):
    names = {
        step: [f"checkpoint_{step}/{i}" for i in range(parts)] or [f"checkpoint_{step}"]
        for step, parts in steps.items()
    }
    every = [name for group in names.values() for name in group]
    assert newest_checkpoint(reversed(every)) == sorted(names[max(steps)])
