"""The manifest of an imported preset: where its weights came from and with what it was made."""

import datetime
import hashlib
import importlib.metadata
import json
import os
import pathlib
import platform

import keras

from keras_elf.version import __version__

NAME = "manifest.json"
_PACKAGES = ("keras", "keras-hub", "numpy", "h5py", "safetensors", "sentencepiece")


def digests(path):
    """sha256 of a file, or of every file below a directory.

    Args:
        path: str or path.

    Returns:
        dict from the name (within the directory) to the hexadecimal digest.
    """
    path = pathlib.Path(path)
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    root = path.parent if path.is_file() else path
    found = {}
    for file in files:
        with open(file, "rb") as stream:
            found[str(file.relative_to(root))] = hashlib.file_digest(stream, "sha256").hexdigest()
    return found


def write(directory, facts):
    """Write `manifest.json` into a directory.

    Args:
        directory: str or path.
        facts: dict. What this import knows; versions and the time are added.
    """
    versions = {"keras-elf": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        versions[package] = importlib.metadata.version(package)
    manifest = {
        **facts,
        "imported": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "backend": keras.backend.backend(),
        "versions": versions,
    }
    with open(os.path.join(directory, NAME), "w", encoding="utf-8") as stream:
        json.dump(manifest, stream, indent=2)
        stream.write("\n")
    return manifest


def read(directory):
    """The manifest of a preset directory, or `None` where there is none."""
    try:
        with open(os.path.join(directory, NAME), encoding="utf-8") as stream:
            return json.load(stream)
    except (FileNotFoundError, NotADirectoryError):
        return None
