"""Arrays in zarr's second format: checked when opened, read chunk by chunk when asked for."""

import functools
import itertools
import json
import math

import numpy as np

from keras_elf.checkpoints.decompression import decompress
from keras_elf.checkpoints.reading import DTYPES, checked_shape, damaged, nbytes, shown
from keras_elf.checkpoints.released import ArrayReference

# Unlike in the other formats, a few bytes may unpack to any size, so the size is bounded:
# sixteen times the largest array of ELF-L.
MAX_ARRAY_BYTES = 2**30
_MAX_METADATA_BYTES = 64 * 1024
_DTYPES = {
    ("|" if dtype.itemsize == 1 else "<") + f"{dtype.kind}{dtype.itemsize}": dtype
    for name, dtype in DTYPES.items()
    if name != "bfloat16"
} | {"bfloat16": DTYPES["bfloat16"]}
# zarr's name of a compressor -> ours.
_COMPRESSORS = {None: None, "zstd": "zstd", "gzip": "gzip", "zlib": "zlib"}


def array_reference(path, keys, name):
    """The array `name` of a key table.

    Args:
        path: the checkpoint, for messages.
        keys: dict of key to bytes or `ocdbt.Place`.
        name: str. The array's name: `name/.zarray` describes it, `name/0.0` is a chunk.

    Raises:
        ValueError: for a description that is not one of an array of numbers, a chunk that is
            missing (zarr would fill it in), and an array over 1 GiB.
    """
    metadata = _metadata(path, keys, name)
    shape = checked_shape(path, name, metadata.get("shape"))
    chunk = checked_shape(path, name, metadata.get("chunks"))
    dtype = metadata.get("dtype")
    dtype = _DTYPES.get(dtype) if isinstance(dtype, str) else None
    compressor = metadata.get("compressor")
    method = compressor.get("id") if isinstance(compressor, dict) else compressor
    if (
        dtype is None
        or not (method is None or isinstance(method, str))
        or method not in _COMPRESSORS
        or metadata.get("zarr_format") != 2
        or metadata.get("order") != "C"
        or metadata.get("filters") is not None
        or metadata.get("dimension_separator", ".") != "."
    ):
        raise damaged(path, f"the array {shown(name)} is not of a kind that orbax writes")
    if len(chunk) != len(shape) or not all(
        1 <= part <= max(size, 1) for part, size in zip(chunk, shape, strict=True)
    ):
        raise damaged(path, f"the chunks of {shown(name)} do not fit its shape {shape}")
    grid = [-(-size // part) for size, part in zip(shape, chunk, strict=True)]
    if nbytes(chunk, dtype) * math.prod(grid) > MAX_ARRAY_BYTES:
        raise damaged(path, f"{shown(name)} declares the shape {shape}, over 1 GiB")
    if math.prod(grid) > len(keys):
        raise damaged(path, f"parts of {shown(name)} are missing")
    chunks = {}
    for index in itertools.product(*map(range, grid)):
        key = f"{name}/{'.'.join(map(str, index)) or '0'}"
        if key not in keys:
            raise damaged(path, f"a part of {shown(name)} is missing ({shown(key)})")
        chunks[index] = keys[key]
    read = functools.partial(_read, path, shape, chunk, dtype, _COMPRESSORS[method], chunks)
    return ArrayReference(shape=shape, dtype=dtype, read=read)


def _metadata(path, keys, name):
    stored = keys.get(f"{name}/.zarray")
    if stored is None:
        raise damaged(path, f"the array {shown(name)} is missing")
    size = len(stored) if isinstance(stored, bytes) else stored.size
    if size > _MAX_METADATA_BYTES:
        raise damaged(path, f"the description of {shown(name)} is {size:,} bytes long")
    return read_json(path, stored if isinstance(stored, bytes) else stored.read())


def read_json(path, data):
    """A JSON object without duplicate keys, or a `ValueError`."""
    try:
        content = json.loads(data, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"its JSON is broken ({type(error).__name__})") from None
    if not isinstance(content, dict):
        raise damaged(path, "its JSON is not an object")
    return content


def _unique(pairs):
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("duplicate keys")
    return content


def _read(path, shape, chunk, dtype, method, chunks):
    array = np.empty(shape, dtype)
    size = nbytes(chunk, dtype)
    for index, stored in chunks.items():
        if not isinstance(stored, bytes):
            # What does not compress grows by little; more than that is not this chunk.
            if stored.size > size + size // 64 + 4096:
                raise damaged(path, f"a part of an array takes {stored.size:,} bytes, not {size:,}")
            stored = stored.read()
        values = np.frombuffer(decompress(path, method, stored, size, exact=True), dtype)
        # Chunks at the edges are stored whole.
        place = tuple(
            slice(i * part, min((i + 1) * part, whole))
            for i, part, whole in zip(index, chunk, shape, strict=True)
        )
        inside = tuple(slice(0, part.stop - part.start) for part in place)
        array[place] = values.reshape(chunk)[inside]
    return array
