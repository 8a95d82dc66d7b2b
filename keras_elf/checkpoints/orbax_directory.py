"""Reads the checkpoint directories of orbax by TensorStore, without orbax, flax or JAX."""

import functools
import json
import pathlib

import numpy as np

from keras_elf.checkpoints import flax_tree
from keras_elf.checkpoints.reading import DTYPES, contained, damaged, file_size, shown
from keras_elf.checkpoints.released import ArrayReference, ReleasedCheckpoint

# ELF-L with optimizer state writes about 2 MB.
_MAX_METADATA_BYTES = 8 * 2**20


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
        reads that one array.

    Raises:
        ImportError: if `tensorstore` is not installed (extra `orbax`).
        ValueError: if the directory is anything else than such a checkpoint.
    """
    store = _Store(pathlib.Path(path))
    state = {}
    for names in store.names():
        _insert(path, state, names, ".".join(names))
    trees = flax_tree.weights_of(path, state, lambda value: isinstance(value, str))
    # All are asked for before the first is waited for.
    opened = {kind: {k: store.open(v) for k, v in tree.items()} for kind, tree in trees.items()}
    step = state.get("step")
    return ReleasedCheckpoint(
        path=path,
        format="orbax",
        step=store.step(step) if isinstance(step, str) else None,
        weights={
            kind: {name: store.reference(name, future) for name, future in tree.items()}
            for kind, tree in opened.items()
        },
    )


class _Store:
    """The arrays of a directory, by the names under which they are stored."""

    def __init__(self, path):
        try:
            import tensorstore
        except ImportError:
            raise ImportError(
                'Reading an orbax checkpoint needs TensorStore: `pip install "keras-elf[orbax]"`. '
                "The msgpack and torch files of the same weights do not."
            ) from None
        self.path, self._tensorstore = path, tensorstore
        base = {"driver": "file", "path": f"{path.resolve()}/"}
        database = contained(path, "manifest.ocdbt").exists()
        self._where = {"driver": "ocdbt", "base": base} if database else base

    def names(self):
        """Where each array belongs in the tree: tuples of str."""
        if contained(self.path, "_METADATA").exists():
            yield from _listed_names(self.path)
            return
        # Older checkpoints have no list. Names in flax have no dots.
        keys = self._result(self._tensorstore.KvStore.open(self._where))
        for key in self._result(keys.list()):
            name, _, file = key.decode("utf-8", "replace").rpartition("/")
            if file == ".zarray":
                yield tuple(name.split("."))

    def open(self, name):
        """A future of the array `name`. A part that is missing is an error, no zeros."""
        inside = self._where.get("path", "") + f"{name}/"
        return self._tensorstore.open(
            {
                "driver": "zarr",
                "kvstore": {**self._where, "path": inside},
                "fill_missing_data_reads": False,
            },
            read=True,
            open=True,
        )

    def reference(self, name, future):
        array = self._result(future)
        dtype = DTYPES.get(array.dtype.name)
        if dtype is None:
            raise damaged(self.path, f"{shown(name)} has the type {shown(array.dtype.name)}")
        read = functools.partial(self._read, array)
        return ArrayReference(shape=tuple(array.shape), dtype=dtype, read=read)

    def step(self, name):
        step = np.asarray(self._read(self._result(self.open(name))))
        return int(step) if step.shape == () and step.dtype.kind in "iu" and step >= 0 else None

    def _read(self, array):
        return np.array(self._result(array.read()))

    def _result(self, future):
        try:
            return future.result()
        except (ValueError, OSError, NotImplementedError) as error:
            # What follows the first line are TensorStore's own settings.
            reason = str(error).splitlines()[0].split(" [")[0][:200]
            raise damaged(self.path, f"TensorStore says {reason!r}") from None


def _listed_names(path):
    file = contained(path, "_METADATA")
    if file_size(file) > _MAX_METADATA_BYTES:
        raise damaged(path, f"its _METADATA is {file_size(file):,} bytes long")
    try:
        metadata = json.loads(file.read_bytes())
        entries = list(metadata["tree_metadata"].values())
        for entry in entries:
            names = tuple(part["key"] for part in entry["key_metadata"])
            if not names or not all(isinstance(name, str) for name in names):
                raise damaged(path, "an entry of its _METADATA has a name that is not text")
            # Empty places in the optimizer's state are listed, and nothing is stored for them.
            if not entry["value_metadata"].get("skip_deserialize"):
                yield names
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError, RecursionError) as error:
        raise damaged(path, f"its _METADATA lists no arrays ({type(error).__name__})") from None
    except json.JSONDecodeError as error:
        raise damaged(path, f"its _METADATA is not valid JSON ({error})") from None


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
