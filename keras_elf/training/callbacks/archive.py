"""A checkpoint as one file: an ordinary zip of NumPy arrays and a manifest in JSON.

Zip keeps a checksum of every array, so that damage is found where it is read.
"""

import contextlib
import json
import zipfile
import zlib

import numpy as np

from keras_elf.atomic_file import replaced

MANIFEST = "manifest.json"
DAMAGE = (OSError, EOFError, ValueError, KeyError, TypeError, NotImplementedError)
DAMAGE = (*DAMAGE, zipfile.BadZipFile, zlib.error)


class Damaged(ValueError):
    """A file that is not a whole checkpoint."""


def write(path, manifest, arrays):
    """Write a dict of arrays and a manifest of what JSON can hold."""
    kinds = {name: array.dtype.name for name, array in arrays.items()}
    with replaced(path, "wb") as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr(MANIFEST, json.dumps({**manifest, "dtypes": kinds}))
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, _plain(array), allow_pickle=False)


def read_manifest(path):
    """The manifest of a file; raises `Damaged`."""
    with _opened(path) as archive:
        return _manifest(archive)


def read(path):
    """`(manifest, dict of arrays)`; raises `Damaged`."""
    with _opened(path) as archive:
        manifest = _manifest(archive)
        arrays = {}
        for name, kind in manifest["dtypes"].items():
            with archive.open(f"{name}.npy") as entry:
                array = np.lib.format.read_array(entry, allow_pickle=False)
                if entry.read(1):
                    raise ValueError(f"{name} is longer than it says")
            arrays[name] = array if array.dtype.name == kind else _special(array, kind)
        return manifest, arrays


@contextlib.contextmanager
def _opened(path):
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except FileNotFoundError:
        raise ValueError(f"There is no checkpoint at {path}.") from None
    except IsADirectoryError:
        raise ValueError(f"A checkpoint is a file. Received the directory {path}") from None
    except DAMAGE as error:
        raise Damaged(f"{path} is damaged or no checkpoint: {error}") from None


def _manifest(archive):
    manifest = json.loads(archive.read(MANIFEST))
    if not isinstance(manifest, dict) or not isinstance(manifest.get("dtypes"), dict):
        raise ValueError("its manifest is not one")
    return manifest


def _plain(array):
    # NumPy's format does not know the 16-bit floats of other packages.
    if array.dtype.kind == "V" or array.dtype.name == "bfloat16":
        return array.view(f"uint{8 * array.dtype.itemsize}")
    return array


def _special(array, kind):
    import ml_dtypes

    dtype = np.dtype(getattr(ml_dtypes, kind, None) or "void")
    if dtype.kind == "V" and dtype.itemsize != array.dtype.itemsize:
        raise ValueError(f"an array of dtype {kind} is stored as {array.dtype.name}")
    return array.view(dtype)
