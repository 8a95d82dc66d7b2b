"""Reads the msgpack checkpoints of flax by `msgpack`, without flax or JAX."""

import functools
import math
import pathlib

import numpy as np

from keras_elf.checkpoints import flax_tree
from keras_elf.checkpoints.reading import DTYPES, checked_shape, damaged, nbytes, shown
from keras_elf.checkpoints.released import ArrayReference, ReleasedCheckpoint

# flax's extension codes: an array, a Python complex, a NumPy scalar.
_ARRAY, _COMPLEX, _SCALAR = 1, 2, 3
# flax splits arrays beyond 1 GiB into a dict with this key.
_SPLIT = "__msgpack_chunked_array__"
_MAX_DEPTH, _MAX_NAME_BYTES = 32, 4096


def open_flax_msgpack(path):
    """Open a checkpoint that flax wrote as one msgpack file.

    Args:
        path: path. The file.

    Returns:
        A `ReleasedCheckpoint` of format `"msgpack"`. Opening holds one array of the file at a
        time, to see its shape; each `read()` reads that one array again.

    Raises:
        ImportError: if `msgpack` is not installed (extra `flax`).
        ValueError: if the file is anything else than such a checkpoint.
    """
    path = pathlib.Path(path)
    msgpack = _msgpack()
    with open(path, "rb") as file, open(path, "rb") as beside:
        unpacker = msgpack.Unpacker(file, max_buffer_size=2**31, raw=False)
        try:
            state = _Walk(path, unpacker, beside).value(0)
        except msgpack.OutOfData:
            raise damaged(path, "it is cut off") from None
        except (ValueError, msgpack.UnpackException) as error:
            if str(error).startswith("Cannot read the checkpoint"):
                raise
            raise damaged(path, f"msgpack says {str(error) or type(error).__name__!r}") from None
        if unpacker.tell() != path.stat().st_size:
            raise damaged(path, "its contents end before its bytes do")
    weights = flax_tree.weights_of(path, state, _is_array)
    step = state.get("step")
    if isinstance(step, ArrayReference) and step.shape == () and step.dtype.kind in "iu":
        step = int(step.read())
    return ReleasedCheckpoint(
        path=path,
        format="msgpack",
        step=step if type(step) is int and step >= 0 else None,
        weights={
            kind: {name: _joined(path, name, value) for name, value in tree.items()}
            for kind, tree in weights.items()
        },
    )


def _msgpack():
    try:
        import msgpack
    except ImportError:
        raise ImportError(
            'Reading a msgpack checkpoint needs msgpack: `pip install "keras-elf[flax]"`. The '
            "torch files of the same weights do not."
        ) from None
    return msgpack


class _Walk:
    """Dicts of the file, with an `ArrayReference` where it has an array."""

    def __init__(self, path, unpacker, beside):
        self._path, self._unpacker, self._beside = path, unpacker, beside

    def value(self, depth):
        start = self._unpacker.tell()
        self._beside.seek(start)
        head = self._beside.read(1)
        # An object at a time: whole, the optimizer's state would be in memory as well.
        if head and (0x80 <= head[0] <= 0x8F or head[0] in (0xDE, 0xDF)):
            return self._map(depth)
        value = self._unpacker.unpack()
        if not hasattr(value, "code"):
            return value
        if value.code not in (_ARRAY, _COMPLEX, _SCALAR):
            raise damaged(self._path, f"flax writes no values of extension type {value.code}")
        if value.code == _COMPLEX:
            return value
        shape, dtype, _ = _fields(self._path, value.data)
        read = functools.partial(_read, self._path, start, self._unpacker.tell() - start)
        return ArrayReference(shape=shape, dtype=dtype, read=read)

    def _map(self, depth):
        if depth > _MAX_DEPTH:
            raise damaged(self._path, "its values are nested too deep")
        entries = {}
        for _ in range(self._unpacker.read_map_header()):
            key = self._unpacker.unpack()
            if not isinstance(key, str) or key in entries or len(key) > _MAX_NAME_BYTES:
                raise damaged(
                    self._path,
                    f"the key {shown(key)} is not a name, or comes twice, or is too long",
                )
            entries[key] = self.value(depth + 1)
        return entries


def _fields(path, data):
    """Shape, dtype and bytes of an array, which flax packs as a list of these three."""
    try:
        shape, name, numbers = _msgpack().unpackb(data, raw=False)
    except (ValueError, TypeError) as error:
        raise damaged(path, f"an array is not one of flax ({error})") from None
    shape = checked_shape(path, name, shape)
    dtype = DTYPES.get(name) if isinstance(name, str) else None
    if dtype is None:
        raise damaged(path, f"an array has the type {shown(name)}, not one of numbers")
    if not isinstance(numbers, bytes) or len(numbers) != nbytes(shape, dtype):
        raise damaged(path, f"the bytes of an array do not fit its shape {shape}")
    return shape, dtype, numbers


def _read(path, start, size):
    with open(path, "rb") as file:
        file.seek(start)
        data = _msgpack().unpackb(file.read(size), raw=False, max_ext_len=size).data
    shape, dtype, numbers = _fields(path, data)
    return np.frombuffer(numbers, dtype).reshape(shape).copy()


def _is_array(value):
    return isinstance(value, ArrayReference) or (isinstance(value, dict) and _SPLIT in value)


def _joined(path, name, value):
    """An array as one, whether flax split it or not."""
    if isinstance(value, ArrayReference):
        return value
    shape = checked_shape(path, name, _numbered(path, name, value.get("shape")))
    parts = _numbered(path, name, value.get("chunks"))
    if not all(isinstance(part, ArrayReference) for part in parts):
        raise damaged(path, f"a part of {shown(name)} is not an array")
    dtypes = {part.dtype for part in parts}
    flat = all(len(part.shape) == 1 for part in parts)
    if len(dtypes) != 1 or not flat or sum(p.shape[0] for p in parts) != math.prod(shape):
        raise damaged(path, f"the parts of {shown(name)} do not make up its shape {shape}")
    return ArrayReference(
        shape=shape,
        dtype=dtypes.pop(),
        read=lambda: np.concatenate([part.read() for part in parts]).reshape(shape),
    )


def _numbered(path, name, tree):
    """The list that flax spells as a dict with the keys "0", "1", ..."""
    if not isinstance(tree, dict) or set(tree) != {str(i) for i in range(len(tree))}:
        raise damaged(path, f"the parts of {shown(name)} are not numbered")
    return [tree[str(i)] for i in range(len(tree))]
