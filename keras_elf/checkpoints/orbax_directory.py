"""Reads the checkpoint directories of orbax without orbax, TensorStore or JAX."""

import os
import pathlib

from keras_elf.checkpoints import flax_tree
from keras_elf.checkpoints.ocdbt import Place, read_keys
from keras_elf.checkpoints.reading import contained, damaged, file_size, read_bytes, shown
from keras_elf.checkpoints.released import ReleasedCheckpoint
from keras_elf.checkpoints.zarr_array import array_reference, read_json

# ELF-L with optimizer state writes about 2 MB.
_MAX_METADATA_BYTES = 8 * 2**20
_MAX_FILES = 200_000


def is_orbax(path):
    """Whether the directory `path` is an orbax checkpoint, by what it holds."""
    path = pathlib.Path(path)
    return (
        any((path / name).exists() for name in ("manifest.ocdbt", "_METADATA"))
        or next(path.glob("params.*/.zarray"), None) is not None
    )


def open_orbax(path):
    """Open a checkpoint that flax wrote through orbax.

    Both layouts are read: one OCDBT database (orbax's default), and one zarr directory an array.

    Args:
        path: path. The directory.

    Returns:
        A `ReleasedCheckpoint` of format `"orbax"`. Opening reads the index; each `read()`
        reads the bytes of that one array into an array of its own.

    Raises:
        ImportError: if zstd is not installed (extra `orbax`).
        ValueError: if the directory is anything else than such a checkpoint, or refers to
            anything outside of itself.
    """
    path = pathlib.Path(path)
    if (path / "manifest.ocdbt").is_symlink() or (path / "manifest.ocdbt").exists():
        keys = read_keys(path)
    else:
        keys = _files(path)
    state = {}
    for names in _names(path, keys):
        _insert(path, state, names, ".".join(names))
    trees = flax_tree.weights_of(path, state, lambda value: isinstance(value, str))
    return ReleasedCheckpoint(
        path=path,
        format="orbax",
        step=_step(path, keys, state.get("step")),
        weights={
            kind: {name: array_reference(path, keys, stored) for name, stored in tree.items()}
            for kind, tree in trees.items()
        },
    )


def _names(path, keys):
    """Where each array belongs in the tree: tuples of str."""
    if (path / "_METADATA").is_symlink() or (path / "_METADATA").exists():
        yield from _listed_names(path)
        return
    # Older checkpoints have no list. Names in flax have no dots.
    for key in keys:
        if key.endswith("/.zarray"):
            yield tuple(key[: -len("/.zarray")].split("."))


def _listed_names(path):
    file = contained(path, "_METADATA")
    size = file_size(file)
    if size > _MAX_METADATA_BYTES:
        raise damaged(path, f"its _METADATA is {size:,} bytes long")
    metadata = read_json(path, read_bytes(file, 0, size))
    if metadata.get("use_zarr3"):
        raise damaged(path, "its arrays are in zarr's third format, which the public code is not")
    tree = metadata.get("tree_metadata")
    if not isinstance(tree, dict):
        raise damaged(path, "its _METADATA lists no arrays")
    for entry in tree.values():
        names = entry.get("key_metadata") if isinstance(entry, dict) else None
        value = entry.get("value_metadata") if isinstance(entry, dict) else None
        if not isinstance(names, list) or not names or not isinstance(value, dict):
            raise damaged(path, "an entry of its _METADATA names no array")
        names = tuple(name.get("key") if isinstance(name, dict) else None for name in names)
        if not all(isinstance(name, str) for name in names):
            raise damaged(path, "an entry of its _METADATA has a name that is no text")
        # Empty places in the optimizer's state are listed, and nothing is stored for them.
        if not value.get("skip_deserialize"):
            yield names


def _insert(path, state, names, stored):
    """Put `stored` where `names` says, refusing one name for two things."""
    *parents, last = names
    for parent in parents:
        state = state.setdefault(parent, {})
        if not isinstance(state, dict):
            raise damaged(path, f"{shown(stored)} lies inside of another array")
    if last in state:
        raise damaged(path, f"it lists {shown(stored)} twice")
    state[last] = stored


def _step(path, keys, stored):
    if not isinstance(stored, str):
        return None
    step = array_reference(path, keys, stored)
    if step.shape != () or step.dtype.kind not in "iu":
        return None
    step = int(step.read())
    return step if step >= 0 else None


def _files(path):
    """The key table of the layout with one zarr directory an array."""
    keys = {}
    for directory in _entries(path):
        if not directory.is_dir(follow_symlinks=False):
            continue
        for file in _entries(directory.path):
            key = f"{directory.name}/{file.name}"
            target = contained(path, key)
            if target.is_file():
                keys[key] = Place(target, 0, file_size(target))
            if len(keys) > _MAX_FILES:
                raise damaged(path, "it has more files than any checkpoint needs")
    return keys


def _entries(path):
    with os.scandir(path) as entries:
        return sorted(entries, key=lambda entry: entry.name)
