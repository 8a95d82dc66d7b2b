"""Bounded reads of files that nobody vouches for, and the one message for a bad one."""

import math
import os
import pathlib
import stat

import ml_dtypes
import numpy as np

# Everything a checkpoint of weights may hold. Looked up by name, never built from a
# string of the file: `np.dtype("O")` would bring pickles back.
DTYPES = {
    name: np.dtype(name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64"),
    )
} | {"bfloat16": np.dtype(ml_dtypes.bfloat16)}
# Values (names, numbers, containers) that one file may list; ELF-L with optimizer state
# lists about 60,000.
MAX_VALUES = 300_000
_MAX_ELEMENTS = 2**40
_MAX_DIMENSIONS = 32


def damaged(path, problem):
    """The error for a checkpoint that cannot be read: which one, why, what to do."""
    return ValueError(
        f"Cannot read the checkpoint {str(path)!r}: {problem}. It is damaged, incomplete or no "
        "checkpoint of the public ELF code: download it again, or save it again from the run."
    )


def shown(value):
    """`repr` of a name out of a file, short enough for a message."""
    text = ascii(value if isinstance(value, (str, bytes, int, float)) else type(value).__name__)
    return text if len(text) <= 80 else text[:77] + "..."


def checked_shape(path, name, shape):
    """`shape` as a tuple; refuses all that no array of weights has."""
    if (
        not isinstance(shape, (list, tuple))
        or len(shape) > _MAX_DIMENSIONS
        or not all(type(size) is int and 0 <= size <= _MAX_ELEMENTS for size in shape)
        # An empty dimension must not hide others that overflow.
        or math.prod(max(size, 1) for size in shape) > _MAX_ELEMENTS
    ):
        raise damaged(path, f"the array {shown(name)} declares an impossible shape")
    return tuple(shape)


def nbytes(shape, dtype):
    return math.prod(shape) * dtype.itemsize


def file_size(path):
    """Size of a regular file. A pipe or a device would block or never end."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise damaged(path, "not a regular file")
    return status.st_size


def read_into(path, offset, buffer):
    """Fill `buffer` with the bytes at `offset`, or refuse: a file may change once opened."""
    view = memoryview(buffer).cast("B")
    file_size(path)
    with open(path, "rb") as file:
        file.seek(offset)
        if file.readinto(view) != len(view):
            raise damaged(path, f"it ends before byte {offset + len(view):,}")


def read_bytes(path, offset, size):
    """`size` bytes at `offset`. The caller has bounded `size`."""
    buffer = bytearray(size)
    read_into(path, offset, buffer)
    return bytes(buffer)


def read_array(path, offset, shape, dtype):
    """An array of its own (no view of the file) with the bytes at `offset`."""
    array = np.empty(shape, dtype)
    if array.size:
        # bfloat16 has no buffer protocol, bytes have.
        read_into(path, offset, array.reshape(-1).view(np.uint8))
    return array


def contained(root, relative):
    """Path of `relative` below the directory `root`, which no `..` and no link may leave.

    One kind of link is followed: hub caches keep `snapshots/<revision>/...` as links
    into `blobs/` beside it.
    """
    parts = pathlib.PurePosixPath(relative).parts
    if not parts or ".." in parts or relative.startswith("/") or set(relative) & set("\\\0:"):
        raise damaged(root, f"it refers to {shown(relative)}, outside of its directory")
    root = pathlib.Path(root).resolve()
    try:
        target = (root / relative).resolve()
    except RuntimeError:
        # A loop of links, before Python 3.13.
        raise damaged(root, f"{shown(relative)} is a link to itself") from None
    homes = [root] + [
        parent.parent / "blobs" for parent in root.parents if parent.name == "snapshots"
    ]
    if not any(target.is_relative_to(home) for home in homes):
        raise damaged(root, f"{shown(relative)} is a link that leaves its directory")
    return target
