"""Directories that are there whole or not at all, built by one process at a time."""

import logging
import os
import shutil
import socket

import filelock

from keras_elf.hub.errors import HubError, explain_local

logger = logging.getLogger("keras_elf")


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
    # An empty value counts as not set: else presets go to the current directory.
    if not home:
        user = os.path.expanduser("~")
        home = os.path.join(user if os.access(user, os.W_OK) else "/tmp", ".keras")
    return os.path.abspath(os.path.join(os.path.expanduser(home), "keras_elf", "presets", *parts))


def build_once(target, build):
    """Return the directory `target`, built first if it is not there.

    A finished directory is returned at once: no lock, nothing written. Else one process
    builds in a directory beside it and renames that into place, while the others wait. Only
    the rename makes a directory finished, so after an exception, a full disk, a `kill -9` or
    a power cut there is no `target`, and the next call starts from the beginning.

    Args:
        target: str or path. The directory that is wanted.
        build: callable. `build(directory)` fills an empty directory.

    Returns:
        str. The absolute path of `target`.

    Raises:
        HubError: if the place cannot be written, the disk is full, or something other than
            a directory has the name.
    """
    target = os.path.abspath(os.fspath(target))
    if _finished(target):
        return target
    parent, name = os.path.split(target)
    try:
        os.makedirs(parent, exist_ok=True)
        lock = filelock.FileLock(os.path.join(parent, f".{name}.lock"))
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            logger.warning("Waiting for another process that builds %s", target)
            lock.acquire()
        try:
            if not _finished(target):
                # The host's name, because not every network file system has locks.
                _build(target, os.path.join(parent, f".{name}.{socket.gethostname()}"), build)
        finally:
            lock.release()
    except HubError:
        raise
    except OSError as error:
        explained = explain_local(error, f"{parent!r} (set KERAS_HOME to choose another place)")
        if explained is None:
            raise
        raise explained from None
    return target


def _finished(target):
    if os.path.lexists(target) and not os.path.isdir(target):
        raise HubError(f"{target!r} is not a directory. Remove it and try again.", "permission")
    # An empty directory was made by somebody else: a build leaves files.
    return os.path.isdir(target) and any(os.scandir(target))


def _build(target, beside, build):
    # What a killed process has left: it held the lock that is ours now.
    shutil.rmtree(beside, ignore_errors=True)
    os.mkdir(beside)
    try:
        build(beside)
        _flush(beside)
        try:
            os.rename(beside, target)
        except OSError:
            # Where the file system has no locks, another host may have been faster.
            if not _finished(target):
                raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _flush(directory):
    """Bring files to the disk before the rename, which may get there first otherwise."""
    for folder, _, files in os.walk(directory):
        for file in files:
            with open(os.path.join(folder, file), "rb") as opened:
                os.fsync(opened.fileno())
