"""`build_once`: whole or not at all, whoever builds at the same time and whatever ends it."""

import errno
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import filelock
import pytest
from keras.src.backend.config import keras_home

from keras_elf.hub import HubError, build_once, keras_home_directory

pytestmark = pytest.mark.backend_free

BUILDER = """
import pathlib, sys, time
from keras_elf.hub import build_once
target, log, seconds = sys.argv[1:]
def build(directory):
    with open(log, "a") as file:
        file.write("built\\n")
    pathlib.Path(directory, "half").write_text("x")
    print("building", flush=True)
    time.sleep(float(seconds))
    pathlib.Path(directory, "whole").write_text("x")
print(build_once(target, build), flush=True)
"""


def write(directory, text="x"):
    os.makedirs(os.path.join(directory, "assets"))
    for name in ("config.json", "assets/vocab.txt"):
        pathlib.Path(directory, name).write_text(text)


def never(directory):
    raise AssertionError("built although it was there")


def left(tmp_path):
    return sorted(path.name for path in tmp_path.iterdir() if not path.name.endswith(".lock"))


def start(target, log, seconds):
    command = [sys.executable, "-c", BUILDER, str(target), str(log), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_builds_once(tmp_path):
    target = tmp_path / "a" / "preset"
    assert build_once(target, write) == str(target)
    assert (target / "assets" / "vocab.txt").read_text() == "x"
    assert build_once(target, never) == str(target)
    assert left(tmp_path / "a") == ["preset"]
    # A cache may be shared by the users of a machine: the usual permissions.
    (tmp_path / "usual").mkdir()
    assert target.stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_finished_needs_neither_lock_nor_write(tmp_path, monkeypatch):
    build_once(tmp_path / "preset", write)

    def refuse(*args, **kwargs):
        raise AssertionError("touched the disk")

    for name in ("makedirs", "rename"):
        monkeypatch.setattr(os, name, refuse)
    monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
    build_once(tmp_path / "preset", never)


def test_two_processes_and_a_kill(tmp_path):
    """One is killed while it builds; of two that come after, one builds and both get it."""
    target, log = tmp_path / "preset", tmp_path / "log"
    killed = start(target, log, 60)
    assert killed.stdout.readline() == "building\n"
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    killed.stdout.close(), killed.stderr.close()
    assert not target.exists() and len(left(tmp_path)) == 2

    first = start(target, log, 0.5)
    assert first.stdout.readline() == "building\n"
    second = start(target, log, 0.5)
    outs = [process.communicate(timeout=60) for process in (first, second)]
    assert [out for out, _ in outs] == [f"{target}\n"] * 2
    assert f"Waiting for another process that builds {target}" in outs[1][1]
    assert log.read_text() == "built\n" * 2
    assert left(tmp_path) == ["log", "preset"]
    assert sorted(os.listdir(target)) == ["half", "whole"]


@pytest.mark.parametrize("error", [RuntimeError("bad weights"), KeyboardInterrupt()])
def test_a_build_that_fails(tmp_path, error):
    def build(directory):
        write(directory)
        raise error

    with pytest.raises(type(error)) as caught:
        build_once(tmp_path / "preset", build)
    assert caught.value is error and left(tmp_path) == []
    assert build_once(tmp_path / "preset", write)


@pytest.mark.parametrize(
    "code, reason, words",
    [
        (errno.ENOSPC, "disk_full", "No space is left"),
        (errno.EROFS, "permission", "Writing is not possible"),
    ],
)
def test_a_disk_that_refuses(tmp_path, code, reason, words):
    def build(directory):
        write(directory)
        raise OSError(code, os.strerror(code), os.path.join(directory, "model.weights.h5"))

    with pytest.raises(HubError, match=f"{words}.*KERAS_HOME") as caught:
        build_once(tmp_path / "preset", build)
    assert caught.value.reason == reason and caught.value.__suppress_context__
    assert left(tmp_path) == []
    assert build_once(tmp_path / "preset", write)


def test_a_full_disk_at_the_very_end(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(HubError, match="No space is left"):
            build_once(tmp_path / "preset", write)
    assert left(tmp_path) == []


def test_errors_of_the_builder_stay_its_own(tmp_path):
    def build(directory):
        open(os.path.join(directory, "missing"))

    with pytest.raises(FileNotFoundError, match="missing"):
        build_once(tmp_path / "preset", build)


def test_what_is_in_the_way(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HubError, match="is not a directory. Remove it"):
        build_once(tmp_path / "file", write)
    with pytest.raises(HubError, match="Writing is not possible.*KERAS_HOME"):
        build_once(tmp_path / "file" / "preset", write)
    (tmp_path / "empty").mkdir()
    assert os.listdir(build_once(tmp_path / "empty", write))


def test_a_home_without_write_access(tmp_path, monkeypatch):
    def refuse(path, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "makedirs", refuse)
    with pytest.raises(HubError, match="Permission denied.*KERAS_HOME") as caught:
        build_once(tmp_path / "a" / "preset", write)
    assert caught.value.reason == "permission"


def test_without_locks_the_slower_takes_what_is_there(tmp_path, monkeypatch):
    def build(directory):
        write(directory)
        write(str(tmp_path / "preset"), "of the faster")

    build_once(tmp_path / "preset", build)
    assert (tmp_path / "preset" / "config.json").read_text() == "of the faster"
    assert left(tmp_path) == ["preset"]


def test_threads(tmp_path):
    built = []

    def build(directory):
        built.append(directory)
        time.sleep(0.1)
        write(directory)

    threads = [
        threading.Thread(target=build_once, args=(tmp_path / "preset", build)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 1


def test_the_home_is_that_of_keras(monkeypatch):
    # Where Keras itself puts what it downloads: its rule has no public name.
    home = os.path.abspath(os.path.expanduser(keras_home()))
    assert keras_home_directory("a", "b") == os.path.join(home, "keras_elf", "presets", "a", "b")
    monkeypatch.setenv("KERAS_HOME", "/somewhere")
    assert keras_home_directory() == "/somewhere/keras_elf/presets"
    monkeypatch.delenv("KERAS_HOME")
    monkeypatch.setenv("HOME", "/nowhere")
    assert keras_home_directory("x") == "/tmp/.keras/keras_elf/presets/x"
    # Keras itself would take the working directory.
    monkeypatch.setenv("KERAS_HOME", "")
    assert keras_home_directory("x") == "/tmp/.keras/keras_elf/presets/x"
