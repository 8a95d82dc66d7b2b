"""Reads the msgpack checkpoints of flax without flax or JAX."""

import functools
import math
import pathlib

import numpy as np

from keras_elf.checkpoints import flax_tree
from keras_elf.checkpoints.msgpack_layout import Blob, Layout
from keras_elf.checkpoints.reading import (
    DTYPES,
    checked_shape,
    damaged,
    file_size,
    nbytes,
    read_array,
    read_into,
    shown,
)
from keras_elf.checkpoints.released import ArrayReference, ReleasedCheckpoint

# flax's extension codes: an array, a Python complex, a NumPy scalar.
_ARRAY, _COMPLEX, _SCALAR = 1, 2, 3
# flax splits arrays beyond 1 GiB into a dict with this key.
_SPLIT = "__msgpack_chunked_array__"


def open_flax_msgpack(path):
    """Open a checkpoint that flax wrote as one msgpack file.

    Args:
        path: path. The file.

    Returns:
        A `ReleasedCheckpoint` of format `"msgpack"`. Opening takes memory for the names only;
        each `read()` reads the bytes of that one array into an array of its own, no view of the
        file.

    Raises:
        ValueError: if the file is anything else than such a checkpoint.
    """
    path = pathlib.Path(path)
    size = file_size(path)
    with open(path, "rb") as file:
        layout = Layout(path, file, 0, size)
        state = layout.value()
        layout.finish()
        _check_extensions(path, state)
        weights = flax_tree.weights_of(path, state, _is_array)
        return ReleasedCheckpoint(
            path=path,
            format="msgpack",
            step=_step(path, file, state.get("step")),
            weights={
                kind: {name: _reference(path, file, name, value) for name, value in tree.items()}
                for kind, tree in weights.items()
            },
        )


def _check_extensions(path, value):
    if isinstance(value, Blob) and value.code not in (None, _ARRAY, _COMPLEX, _SCALAR):
        raise damaged(path, f"flax writes no values of extension type {value.code}")
    children = value.values() if isinstance(value, dict) else value
    for child in children if isinstance(value, (dict, list)) else ():
        _check_extensions(path, child)


def _is_array(value):
    return (isinstance(value, Blob) and value.code == _ARRAY) or (
        isinstance(value, dict) and _SPLIT in value
    )


def _step(path, file, value):
    if isinstance(value, Blob) and value.code in (_ARRAY, _SCALAR):
        shape, dtype, offset = _array(path, file, "step", value)
        if shape == () and dtype.kind in "iu":
            value = int(read_array(path, offset, shape, dtype))
    return value if type(value) is int and value >= 0 else None


def _array(path, file, name, blob):
    """Shape, dtype and file offset of an array: msgpack of [shape, dtype name, bytes]."""
    layout = Layout(path, file, blob.offset, blob.offset + blob.size)
    fields = layout.value()
    layout.finish()
    if not isinstance(fields, list) or len(fields) != 3 or not isinstance(fields[2], Blob):
        raise damaged(path, f"{shown(name)} is not an array")
    shape = checked_shape(path, name, fields[0])
    dtype = DTYPES.get(fields[1]) if isinstance(fields[1], str) else None
    if dtype is None:
        raise damaged(path, f"{shown(name)} has the type {shown(fields[1])}, not one of numbers")
    if fields[2].code is not None or fields[2].size != nbytes(shape, dtype):
        raise damaged(path, f"the bytes of {shown(name)} do not fit its shape {shape}")
    return shape, dtype, fields[2].offset


def _reference(path, file, name, value):
    if isinstance(value, Blob):
        shape, dtype, offset = _array(path, file, name, value)
        read = functools.partial(read_array, path, offset, shape, dtype)
        return ArrayReference(shape=shape, dtype=dtype, read=read)
    shape = checked_shape(path, name, _numbered(path, name, value.get("shape")))
    parts = []
    for part in _numbered(path, name, value.get("chunks")):
        if not isinstance(part, Blob) or part.code != _ARRAY:
            raise damaged(path, f"a part of {shown(name)} is no array")
        parts.append(_array(path, file, name, part))
    dtypes = {dtype for _, dtype, _ in parts}
    sizes = [part[0][0] for part in parts if len(part[0]) == 1]
    if len(dtypes) != 1 or len(sizes) != len(parts) or sum(sizes) != math.prod(shape):
        raise damaged(path, f"the parts of {shown(name)} do not make up its shape {shape}")
    dtype = dtypes.pop()
    read = functools.partial(_read_parts, path, shape, dtype, parts)
    return ArrayReference(shape=shape, dtype=dtype, read=read)


def _numbered(path, name, tree):
    """The list that flax spells as a dict with the keys "0", "1", ..."""
    if not isinstance(tree, dict) or set(tree) != {str(i) for i in range(len(tree))}:
        raise damaged(path, f"the parts of {shown(name)} are not numbered")
    return [tree[str(i)] for i in range(len(tree))]


def _read_parts(path, shape, dtype, parts):
    flat, start = np.empty(math.prod(shape), dtype), 0
    for (size,), _, offset in parts:
        if size:
            read_into(path, offset, flat[start : start + size].view(np.uint8))
        start += size
    return flat.reshape(shape)
