"""Downloads with the real client: what is fetched, what is kept, what goes on, what is refused."""

import errno
import hashlib
import os
import shutil

import huggingface_hub
import pytest
from huggingface_hub import constants

from keras_elf.hub import Download, HubError, download, newest_checkpoint
from tests.hub.conftest import FILES, LARGE, REPO
from tests.hub.server import unused_address

pytestmark = pytest.mark.backend_free

NEWEST = "checkpoint_78000"


def content(found, name):
    with open(os.path.join(found.path, name), "rb") as file:
        return file.read()


def ranges(hub):
    return [r.headers["range"] for r in hub.requests if "range" in r.headers]


def go_offline(monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


def test_only_what_was_asked_for(hub):
    found = download(REPO, [newest_checkpoint, "*.json", "assets/vocab.txt"])
    wanted = [NEWEST, "assets/vocab.txt", "config.json"]
    assert found == Download(
        found.path,
        REPO,
        "main",
        hub.repositories[REPO]["main"][0],
        {name: hashlib.sha256(FILES[name]).hexdigest() for name in wanted},
    )
    assert all(content(found, name) == FILES[name] for name in wanted)
    assert not hub.asked("checkpoint_500") and not hub.asked("README")


def test_the_clients_own_tools_find_it(hub):
    found = download(REPO, NEWEST)
    path = huggingface_hub.hf_hub_download(REPO, NEWEST, local_files_only=True)
    assert huggingface_hub.snapshot_download(REPO, local_files_only=True) == found.path
    assert os.path.samefile(path, os.path.join(found.path, NEWEST))
    cache = huggingface_hub.scan_cache_dir(constants.HF_HUB_CACHE)
    assert not cache.warnings and {repo.repo_id for repo in cache.repos} == {REPO}


def test_what_the_client_downloaded_is_used(hub):
    huggingface_hub.hf_hub_download(REPO, NEWEST)
    huggingface_hub.hf_hub_download(REPO, "config.json")
    hub.requests.clear()
    download(REPO, [NEWEST, "config.json"])
    assert len(hub.requests) == 1


def test_second_call_asks_once_for_a_branch(hub):
    download(REPO, NEWEST)
    hub.requests.clear()
    download(REPO, NEWEST)
    assert hub.asked() == [f"GET /api/models/{REPO}/revision/main?blobs=true"]


def test_no_connection_for_a_commit_or_offline(hub, monkeypatch):
    first = download(REPO, [NEWEST, "config.json"])
    hub.requests.clear()
    assert download(REPO, NEWEST, revision=first.commit).path == first.path
    go_offline(monkeypatch)
    again = download(REPO, [newest_checkpoint, "config.json"])
    assert again == first and not hub.requests


def test_offline_with_a_cache_that_another_program_filled(hub, monkeypatch):
    huggingface_hub.hf_hub_download(REPO, NEWEST)
    huggingface_hub.hf_hub_download(REPO, "config.json")
    go_offline(monkeypatch)
    assert set(download(REPO, "*").files) == {NEWEST, "config.json"}


def test_unreachable_hub_falls_back_to_the_cache_and_says_so(hub, monkeypatch, caplog):
    first = download(REPO, NEWEST)
    monkeypatch.setattr(constants, "ENDPOINT", unused_address())
    assert download(REPO, NEWEST) == first
    assert "Using the copy" in caplog.text and "cannot be reached" in caplog.text
    with pytest.raises(HubError, match="only in part: 'config.json' is missing"):
        download(REPO, "config.json")


def test_a_new_commit_on_the_branch(hub):
    first = download(REPO, ["config.json", NEWEST])
    hub.update(REPO, {**FILES, "config.json": b"{}"})
    hub.requests.clear()
    second = download(REPO, ["config.json", NEWEST])
    assert second.commit != first.commit and content(second, "config.json") == b"{}"
    assert content(first, "config.json") == FILES["config.json"]
    # The large file is the same blob: it is linked, not fetched.
    assert not [r for r in hub.requests if r.is_storage]


def test_a_file_system_without_links(hub, monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "symlink", refuse)
    first = download(REPO, [NEWEST, "config.json"])
    hub.requests.clear()
    assert download(REPO, [NEWEST, "config.json"], revision=first.commit).files == first.files
    assert content(first, NEWEST) == LARGE and not hub.requests


def test_revision(hub):
    commit = hub.update(REPO, {"config.json": b"tagged"}, revision="refs/pr/1")
    found = download(REPO, "config.json", revision="refs/pr/1")
    assert (found.commit, found.revision) == (commit, "refs/pr/1")
    assert content(found, "config.json") == b"tagged"


def test_a_cut_is_resumed_within_a_call(hub):
    hub.cut_after(150_000, times=2)
    found = download(REPO, NEWEST)
    assert content(found, NEWEST) == LARGE
    starts = [int(r.removeprefix("bytes=").removesuffix("-")) for r in ranges(hub)]
    assert len(starts) == 2 and 100_000 < starts[0] < starts[1]


def test_a_download_that_stopped_halfway_is_not_taken_for_whole(hub, monkeypatch):
    """Offline the newest checkpoint is that of the listing, not what happens to be there."""
    files = {f"checkpoint_7/{name}": LARGE for name in "abc"}
    commit = hub.update(REPO, files)
    hub.fail_with(418, where="checkpoint_7/c")
    with pytest.raises(HubError, match="418"):
        download(REPO, newest_checkpoint)
    go_offline(monkeypatch)
    for revision in (commit, "main"):
        with pytest.raises(HubError, match="not in the cache"):
            download(REPO, newest_checkpoint, revision)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    hub.behave()
    hub.requests.clear()
    assert set(download(REPO, newest_checkpoint).files) == set(files)
    assert not hub.asked("checkpoint_7/a")


def test_the_token_goes_to_the_hub_only(hub):
    hub.require_token("hf_secret")
    download(REPO, [NEWEST, "config.json"], token="hf_secret")
    sent = {(r.is_storage, r.headers.get("authorization")) for r in hub.requests}
    assert sent == {(False, "Bearer hf_secret"), (True, None)}


@pytest.mark.parametrize("name, kind", [(NEWEST, "sha256"), ("config.json", "git sha1")])
def test_a_corrupted_file_is_refused_and_then_fetched_anew(hub, name, kind):
    hub.corrupt(name)
    with pytest.raises(
        HubError, match=f"(?s){name}.*damaged: its {kind} is .*call again"
    ) as caught:
        download(REPO, name)
    assert caught.value.reason == "damaged"
    assert os.listdir(blobs()) == []
    hub.behave()
    assert content(download(REPO, name), name) == FILES[name]


@pytest.mark.parametrize("change", ["flip", "cut"])
def test_a_blob_damaged_later_is_found(hub, monkeypatch, change):
    found = download(REPO, NEWEST)
    with open(os.path.join(found.path, NEWEST), "r+b") as file:
        file.write(b"x") if change == "flip" else file.truncate(1000)
    go_offline(monkeypatch)
    with pytest.raises(HubError, match="damaged"):
        download(REPO, NEWEST)
    # The broken copy is gone, which a retry says without a network and repairs with one.
    with pytest.raises(HubError, match="only in part"):
        download(REPO, NEWEST)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    assert content(download(REPO, NEWEST), NEWEST) == LARGE


@pytest.mark.parametrize("name", ["../../../../escaped", "/escaped", "a/../../b", "c:\\x", "a\\b"])
def test_names_that_lead_out_are_refused(hub, tmp_path, name):
    hub.update(REPO, {"config.json": b"{}", name: b"x"})
    with pytest.raises(HubError, match="leads out of its directory"):
        download(REPO, "*")
    assert not os.path.exists(tmp_path / "hf")


def test_no_match(hub):
    with pytest.raises(HubError, match="no file like.*holds: 'README.md', 'assets/vocab.txt'"):
        download(REPO, ["*.safetensors"])
    with pytest.raises(HubError, match="has no file 'vocab.json'"):
        download(REPO, ["config.json", "vocab.json"])


def test_a_disk_that_fills_up(hub, monkeypatch):
    def full(path, *args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        # The client's last step: the file under its name.
        patch.setattr(shutil, "move", full)
        with pytest.raises(HubError, match="No space is left.*HF_HOME") as caught:
            download(REPO, NEWEST)
    assert caught.value.reason == "disk_full"
    assert content(download(REPO, NEWEST), NEWEST) == LARGE


def test_a_cache_that_cannot_be_written(hub, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "file" / "hub"))
    with pytest.raises(HubError, match="Writing is not possible.*HF_HOME") as caught:
        download(REPO, NEWEST)
    assert caught.value.reason == "permission"


@pytest.mark.parametrize("repo_id", ["a/b/c", "../x", "a/..", "", "a//b", "a b/c", None, "a/b--c"])
def test_repo_ids(repo_id):
    with pytest.raises(ValueError, match="(?i)repo.id"):
        download(repo_id, "*")


@pytest.mark.parametrize("revision", ["", "../main", "a/../b", "/x", "x\n", "a b", 3])
def test_revisions(revision):
    with pytest.raises(ValueError, match="`revision` must be"):
        download(REPO, "*", revision=revision)


def blobs():
    folder = "models--" + REPO.replace("/", "--")
    return os.path.join(constants.HF_HUB_CACHE, folder, "blobs")
