"""Writes checkpoint directories in orbax's layout, sound and hostile, without orbax."""

import json

from keras_elf.checkpoints.binary import crc32c

MANIFEST, NODE = b"\x0c\xdb\x3a\x2a", b"\x0c\xdb\x20\xde"


def varint(value):
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(encoded + bytes([value]))


def column(values):
    return b"".join(map(varint, values))


def frame(magic, body, compression=0, version=0):
    """A manifest or node around `body`, with its length and checksum."""
    data = magic + (len(body) + 18).to_bytes(8, "little") + bytes([version, compression]) + body
    return data + crc32c(data).to_bytes(4, "little")


def files(paths, bases=None):
    """A table of data files."""
    count = len(paths)
    bases = bases or [0] * count
    lengths = column([0] * (count - 1)) + column(len(path) for path in paths)
    return varint(count) + lengths + column(bases) + "".join(paths).encode()


def manifest(path, offset, size, height=0, kind=0):
    body = bytes(16) + varint(kind) + varint(1024) + varint(10**8) + b"\4" + varint(0)
    body += files([path]) + varint(1) + varint(1) + bytes([height]) + varint(0)
    body += varint(offset) + varint(size) + column([1, 1, 1]) + bytes(8) + varint(0)
    return frame(MANIFEST, body)


def leaf(values, data_files=()):
    """A leaf node: dict of key to bytes or to (file index, offset, size)."""
    keys = sorted(values)
    sizes = [v[2] if isinstance(v, tuple) else len(v) for v in map(values.get, keys)]
    outside = [values[key] for key in keys if isinstance(values[key], tuple)]
    body = b"\0" + files(list(data_files)) + varint(len(keys)) + column([0] * (len(keys) - 1))
    body += column(len(key) for key in keys) + "".join(keys).encode() + column(sizes)
    body += column(int(isinstance(values[key], tuple)) for key in keys)
    body += column(place[0] for place in outside) + column(place[1] for place in outside)
    return frame(NODE, body + b"".join(v for v in map(values.get, keys) if isinstance(v, bytes)))


def interior(height, children, data_file):
    """An interior node: list of (key, inherited length, offset, size) of its children."""
    keys = [child[0] for child in children]
    count = len(keys)
    body = bytes([height]) + files([data_file]) + varint(count) + column([0] * (count - 1))
    body += column(len(key) for key in keys) + column(child[1] for child in children)
    body += "".join(keys).encode() + column([0] * count)
    body += column(child[2] for child in children) + column(child[3] for child in children)
    return frame(NODE, body + column([1] * count) * 3)


def zarray(shape=(2,), chunks=None, dtype="<f4", compressor=None, **changes):
    fields = {"zarr_format": 2, "shape": list(shape), "chunks": list(chunks or shape)}
    fields |= {"dtype": dtype, "compressor": compressor, "order": "C", "filters": None}
    return json.dumps(fields | {"fill_value": None, "dimension_separator": "."} | changes).encode()


def metadata(names):
    """`_METADATA` for tuples of names."""
    tree = {
        str(name): {
            "key_metadata": [{"key": part, "key_type": 2} for part in name],
            "value_metadata": {"value_type": "np.ndarray", "skip_deserialize": False},
        }
        for name in names
    }
    return json.dumps({"tree_metadata": tree, "use_zarr3": False})


def directory(path, values, node=None, data_files=(), others=(), names=(("params", "a"),)):
    """A whole checkpoint with one node, which lists `values`."""
    path.mkdir()
    node = leaf(values, data_files) if node is None else node
    (path / "node").write_bytes(node)
    (path / "manifest.ocdbt").write_bytes(manifest("node", 0, len(node)))
    (path / "_METADATA").write_text(metadata(names))
    for file, data in dict(others).items():
        (path / file).write_bytes(data)
    return path
