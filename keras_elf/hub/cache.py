"""Directories that are there whole or not at all, built by one process at a time."""

import contextlib
import os
import re
import shutil
import socket
import tempfile
import time

from keras_elf.hub.errors import HubError
from keras_elf.hub.explain import explain_local
from keras_elf.hub.locks import locked

_DAY = 24 * 3600


def keras_home_directory(*parts):
    """Return a path below the presets of this package in Keras's home; nothing is made.

    Keras's home is `KERAS_HOME`, else `~/.keras`, else `/tmp/.keras` where the home directory
    is not writable: the rule by which Keras itself stores its downloads.

    Args:
        *parts: str. Names below `<Keras's home>/keras_elf/presets`.

    Returns:
        str. The absolute path.
    """
    home = os.environ.get("KERAS_HOME")
    # An empty one is none: presets would land in whatever directory a program runs in.
    if not home:
        user = os.path.expanduser("~")
        home = os.path.join(user if os.access(user, os.W_OK) else "/tmp", ".keras")
    return os.path.abspath(os.path.join(os.path.expanduser(home), "keras_elf", "presets", *parts))


def build_once(target, build):
    """Return the directory `target`, built first if it is not there.

    A finished directory is returned at once: no lock, nothing written. Else one process
    builds in a directory beside it and renames that into place, while the others wait. The
    rename alone makes a directory finished, so an exception, a full disk, a `kill -9` or a
    power cut leaves no `target`, and the next call starts afresh.

    Args:
        target: str or path. The directory that is wanted.
        build: callable. `build(directory)` fills an empty directory.

    Returns:
        str. The absolute path of `target`.

    Raises:
        HubError: if the place cannot be written, the disk is full, or something other than
            a directory is in the way.
    """
    target = os.path.abspath(os.fspath(target))
    if _finished(target):
        return target
    parent, name = os.path.split(target)
    try:
        os.makedirs(parent, exist_ok=True)
        with locked(os.path.join(parent, f".{name}.lock"), f"building {target}"):
            if not _finished(target):
                _remove_stale(parent, name)
                _build(target, build)
    except HubError:
        raise
    except OSError as error:
        place = f"{parent!r} (set KERAS_HOME to choose another place)"
        explained = explain_local(error, place)
        if explained is None:
            raise
        raise explained from None
    return target


def _finished(target):
    if os.path.lexists(target) and not os.path.isdir(target):
        raise HubError(f"{target!r} is in the way: it is not a directory. Remove it.", "permission")
    # An empty directory was made by somebody else: a build leaves files.
    return os.path.isdir(target) and any(os.scandir(target))


def _build(target, build):
    parent, name = os.path.split(target)
    beside = tempfile.mkdtemp(prefix=f"{_prefix(name)}{_host()}-{os.getpid()}-", dir=parent)
    try:
        build(beside)
        _flush(beside)
        # mkdtemp lets nobody else in; a cache may be shared by the users of a machine.
        os.chmod(beside, 0o777 & ~current_umask())
        try:
            os.rename(beside, target)
        except OSError:
            # Where the file system has no locks, another process may have been faster.
            if not _finished(target):
                raise
        _flush_directory(parent)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _remove_stale(parent, name):
    """Remove what killed builders left. Holding the lock, none of them is alive on this host."""
    pattern = re.compile(re.escape(_prefix(name)) + r"(.+)-\d+-[^-]*")
    for entry in list(os.scandir(parent)):
        match = pattern.fullmatch(entry.name)
        if match is None:
            continue
        with contextlib.suppress(OSError):
            # A network file system may keep locks of one host from another.
            ours = match.group(1) == _host()
            if ours or time.time() - entry.stat(follow_symlinks=False).st_mtime > _DAY:
                shutil.rmtree(entry.path, ignore_errors=True)


def _prefix(name):
    return f".{name}.building-"


def _host():
    return re.sub(r"[^A-Za-z0-9.]", "_", socket.gethostname())[:40] or "host"


def current_umask():
    """The permissions that new files of this process lack."""
    current = os.umask(0o022)
    os.umask(current)
    return current


def _flush(directory):
    """Bring files to the disk before the rename, which may get there first otherwise."""
    for folder, _, files in os.walk(directory):
        for file in files:
            with open(os.path.join(folder, file), "rb") as opened:
                os.fsync(opened.fileno())
        _flush_directory(folder)


def _flush_directory(path):
    # Some systems cannot open or flush a directory; the rename is no less atomic there.
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
