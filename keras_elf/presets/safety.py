"""Looks at a preset before anything of it is loaded, and at the disk before one is saved."""

import json
import os
import pathlib
import tempfile

import keras
import numpy as np

from keras_elf import checks
from keras_elf.presets import classes

MAX_JSON_BYTES = 8 * 2**20
MAX_VOCABULARY_BYTES = 64 * 2**20
# Far above anything published; a configuration without weights has nothing else to bound it.
MAX_PARAMETERS = 20 * 10**9
MAX_LAYERS = 1000
_COUNTS = ("depth", "num_layers")


def check_links(path):
    """Raise `ValueError` if a file of the preset directory `path` lies outside it.

    Links are followed within the directory, and from a snapshot of a hub's cache to the files
    of the same repository (`models--user--name/blobs`), where the hub's client keeps them.
    """
    root = pathlib.Path(path).resolve()
    allowed = [root]
    if root.parent.name == "snapshots":
        allowed.append(root.parent.parent / "blobs")
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            entry = pathlib.Path(folder, name)
            target = entry.resolve()
            if not any(target.is_relative_to(place) for place in allowed):
                raise ValueError(
                    f"The preset {str(path)!r} is refused: {entry.relative_to(root)} is a link to "
                    f"{str(target)!r}, outside the preset. Copy the file into the preset if you "
                    "trust it"
                )


def read_json(path, file):
    """The Keras configuration in a preset's JSON file, checked for what it may name."""
    place = os.path.join(path, file)
    try:
        if os.path.getsize(place) > MAX_JSON_BYTES:
            raise ValueError(
                f"{file} in preset {path!r} is refused: it has {os.path.getsize(place):,} bytes, "
                f"and a configuration at most {MAX_JSON_BYTES:,}"
            )
        with open(place, encoding="utf-8") as stream:
            text = stream.read()
    except OSError as error:
        raise ValueError(f"The preset {path!r} is incomplete: {file} cannot be read") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} in preset {path!r} is not UTF-8: {error}") from error
    try:
        content = json.loads(text)
        _check_values(content, file, path)
    except RecursionError:
        raise ValueError(f"{file} in preset {path!r} is refused: it is nested too deep") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{file} in preset {path!r} is not valid JSON: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("config"), dict):
        raise ValueError(f"{file} in preset {path!r} is not a Keras configuration")
    return content


def _check_values(content, file, path):
    """Refuse classes that nobody registered, paths, and layers beyond number."""
    if isinstance(content, list):
        for value in content:
            _check_values(value, file, path)
    if not isinstance(content, dict):
        return
    if "class_name" in content and not classes.is_known(content):
        name = content.get("registered_name") or content["class_name"]
        raise ValueError(
            f"{file} in preset {path!r} is refused: it asks for {name!r} of module "
            f"{content.get('module')!r}, which is not a registered class. "
            f"{classes.where_to_find(content)}"
        )
    for key, value in content.items():
        if isinstance(value, str) and (value.startswith(("/", "~")) or ".." in value):
            raise ValueError(
                f"{file} in preset {path!r} is refused: {key} holds the path {value!r}, and a "
                "preset has no business outside its directory"
            )
        if key in _COUNTS:
            checks.integer(f"{key} in {file} of preset {path!r}", value, 1, MAX_LAYERS)
        _check_values(value, file, path)


def check_room(directory, variables, more=0):
    """Raise `OSError` if a directory has no room for the weights of a preset.

    Where a disk is full HDF5 does not raise: it takes the whole process down. So the place is
    asked for beforehand, which also finds quotas and limits on the size of files.

    Args:
        directory: str or path.
        variables: list of `keras.Variable`.
        more: int. Bytes besides. Defaults to `0`.
    """
    if not hasattr(os, "posix_fallocate"):
        return
    # A header for each array besides its values; integers of four bits are written as bytes.
    sizes = [4096 + int(np.prod(v.shape)) * max(1, _bits(v.dtype) // 8) for v in variables]
    with tempfile.TemporaryFile(dir=directory) as stream:
        os.posix_fallocate(stream.fileno(), 0, sum(sizes) + more)


def _bits(dtype):
    digits = "".join(c for c in keras.backend.standardize_dtype(dtype) if c.isdigit())
    return int(digits[:2] if digits else 8)


def check_sizes(path, task, weight_files):
    """Raise `ValueError` if a preset asks for more weights than its files can hold.

    Classes with a `parameter_count` of their arguments are asked here, before anything is
    built; whatever they answer, `weight_budget` counts while the model is built.

    Args:
        path: str. The directory.
        task: dict. Content of task.json, or of config.json for a network alone.
        weight_files: names of the files the weights are loaded from; empty for none.
    """
    network = task["config"].get("backbone", task)
    encoder = task["config"].get("encoder") or network["config"].get("tied_to")
    limit, held = most_weights(path, weight_files)
    counts = [_declared(part, path) for part in (network, encoder) if isinstance(part, dict)]
    declared = [count for count in counts if count is not None]
    if any(count <= 0 for count in declared) or sum(declared) > limit:
        raise ValueError(
            f"The preset {path!r} is refused: its configuration asks for {sum(declared):,} "
            f"parameters, but {held}"
        )


def most_weights(path, weight_files):
    """`(limit, reason)`: the most weights that files can hold, or that are allowed without."""
    if not weight_files:
        return MAX_PARAMETERS, f"the limit is {MAX_PARAMETERS:,}"
    stored = sum(os.path.getsize(os.path.join(path, file)) for file in weight_files)
    # The smallest weights are two to a byte.
    return 2 * stored, f"its weights take {stored:,} bytes"


def _declared(serialized, path):
    """Number of weights that a serialised layer asks for; `None` if its class cannot tell."""
    cls = keras.saving.get_registered_object(serialized.get("registered_name") or "")
    count = getattr(cls, "parameter_count", None)
    if not callable(count):
        return None
    config = serialized["config"]
    try:
        return count(**{k: v for k, v in config.items() if k not in ("name", "dtype")})
    except (TypeError, ValueError, ArithmeticError, KeyError) as error:
        raise ValueError(f"The configuration in preset {path!r} is damaged: {error}") from error
