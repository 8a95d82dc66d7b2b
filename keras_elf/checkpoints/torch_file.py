"""Reads `checkpoint_<step>` files of `torch.save` with NumPy alone."""

import functools
import pathlib
import struct
import zipfile
import zlib

import numpy as np

from keras_elf.checkpoints.inert_pickle import MAX_PICKLE_BYTES, Tensor, load
from keras_elf.checkpoints.reading import (
    damaged,
    file_size,
    nbytes,
    read_array,
    read_bytes,
    shown,
)
from keras_elf.checkpoints.released import ArrayReference, ReleasedCheckpoint

# What `torch.compile` and `DistributedDataParallel` put before every name.
_WRAPPERS = ("_orig_mod.", "module.")


def open_torch_file(path):
    """Open a checkpoint of the public PyTorch code.

    PyTorch is not needed and nothing in the file is executed: its pickle is read as a
    description of data (see `inert_pickle`), its archive may hold stored entries only. Accepted
    are the training checkpoints of the public code (`params`, `ema_params1`, `step`) and
    bare state dicts. The names keep no prefix of `torch.compile` or
    `DistributedDataParallel`.

    Args:
        path: path. The file.

    Returns:
        A `ReleasedCheckpoint` of format `"torch"`. Each `read()` reads the bytes of that
        one array into an array of its own, no view of the file.

    Raises:
        ValueError: if the file is anything else than such a checkpoint.
    """
    path = pathlib.Path(path)
    content, entries = _content(path)
    if not isinstance(content, dict):
        raise damaged(path, f"it holds a {type(content).__name__}, not a state dict")
    trees = {"raw": content.get("params"), "ema": content.get("ema_params1")}
    step = content.get("step")
    if not isinstance(trees["raw"], dict):
        trees, step = {"raw": content}, None
    return ReleasedCheckpoint(
        path=path,
        format="torch",
        step=step if type(step) is int and step >= 0 else None,
        weights={
            kind: _weights(path, entries, tree) for kind, tree in trees.items() if tree is not None
        },
    )


def _content(path):
    """What the archive's pickle describes, and where the archive's entries lie."""
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        UnicodeDecodeError,
        struct.error,
    ) as error:
        raise damaged(path, f"the archive is broken ({error})") from None
    entries = _entries(path, infos)
    offset, size, checksum = entries["data.pkl"]
    if size > MAX_PICKLE_BYTES:
        raise damaged(path, f"its pickle is {size:,} bytes long, no state dict needs that")
    data = read_bytes(path, offset, size)
    # Zero where the writer was told to store none.
    if checksum and zlib.crc32(data) != checksum:
        raise damaged(path, "its pickle does not match its checksum")
    order = entries.get("byteorder")
    if order is not None and read_bytes(path, order[0], min(order[1], 6)) != b"little":
        raise damaged(path, "it was written on a big-endian machine")
    return load(path, data), entries


def _entries(path, infos):
    """Where the entries lie: dict of name -> (offset, size, CRC-32).

    Entries are stored and not compressed, so that no file unpacks to more than its own size.
    """
    names = [info.filename for info in infos]
    stem = next((name[: -len("data.pkl")] for name in names if name.endswith("/data.pkl")), None)
    if stem is None or not all(name.startswith(stem) for name in names):
        raise damaged(path, "the archive was not written by torch.save (it has no data.pkl)")
    entries, total = {}, file_size(path)
    for info in infos:
        name, header = info.filename, info.header_offset
        if info.compress_type or info.flag_bits & 1 or info.file_size != info.compress_size:
            raise damaged(path, f"the entry {shown(name)} is compressed or encrypted")
        # The entry's own header says where its bytes begin: 30 bytes, its name, extra fields.
        if header + 30 + info.file_size > total:
            raise damaged(path, f"the entry {shown(name)} lies outside of the archive")
        lengths = struct.unpack("<2H", read_bytes(path, header + 26, 4))
        entries[name[len(stem) :]] = (header + 30 + sum(lengths), info.file_size, info.CRC)
    return entries


def _weights(path, entries, tree):
    if not isinstance(tree, dict) or not tree:
        raise damaged(path, "its state dict is empty or not a dict")
    for name, value in tree.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise damaged(path, f"{shown(name)} of its state dict is not a named tensor")
    names = list(tree)
    for wrapper in _WRAPPERS * 2:
        if all(name.startswith(wrapper) for name in names):
            names = [name[len(wrapper) :] for name in names]
    return {
        name: _reference(path, entries, name, tensor)
        for name, tensor in zip(names, tree.values(), strict=True)
    }


def _reference(path, entries, name, tensor):
    storage = tensor.storage
    place = entries.get(f"data/{storage.key}")
    if place is None or place[1] != nbytes((storage.size,), storage.dtype):
        raise damaged(path, f"the numbers of {shown(name)} are missing or not of its size")
    read = functools.partial(_read, path, place[0], tensor)
    return ArrayReference(shape=tensor.shape, dtype=storage.dtype, read=read)


def _read(path, start, tensor):
    dtype = tensor.storage.dtype
    start += tensor.offset * dtype.itemsize
    if _is_contiguous(tensor):
        return read_array(path, start, tensor.shape, dtype)
    # Read what lies between the first and the last element, then walk it.
    last = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.strides, strict=True))
    strides = [stride * dtype.itemsize for stride in tensor.strides]
    span = read_array(path, start, (last + 1,), dtype)
    return np.lib.stride_tricks.as_strided(span, tensor.shape, strides).copy()


def _is_contiguous(tensor):
    expected = 1
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.strides), strict=True):
        if size != 1 and stride != expected:
            return 0 in tensor.shape
        expected *= size
    return True
