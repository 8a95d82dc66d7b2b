"""The key table of an OCDBT database, the single-file store inside orbax checkpoints.

After the public description of the format (TensorStore, "ocdbt Key-Value Store driver").
TensorStore itself is not used: it reserves memory for the key lengths that a node declares,
so that a node of two megabytes asks for twelve gigabytes and ends the process.
"""

import dataclasses
import pathlib

from keras_elf.checkpoints.binary import Cursor, crc32c
from keras_elf.checkpoints.decompression import decompress
from keras_elf.checkpoints.reading import contained, damaged, file_size, read_bytes, shown

_MANIFEST, _NODE = b"\x0c\xdb\x3a\x2a", b"\x0c\xdb\x20\xde"
# ELF-L with optimizer state: some 5,000 keys in nodes of 2 MB altogether.
_MAX_NODE_BYTES = 8 * 2**20
# Stored, unpacked and as names together; the checksums of more would take seconds.
_MAX_TREE_BYTES = 32 * 2**20
_MAX_KEYS = 200_000
_MAX_NODES = 2_000
_MAX_KEY_BYTES = 4096
_MAX_HEIGHT = 16


@dataclasses.dataclass(frozen=True)
class Place:
    """Bytes `offset : offset + size` of a file that lies inside of the checkpoint."""

    path: pathlib.Path
    offset: int
    size: int

    def read(self):
        return read_bytes(self.path, self.offset, self.size)


def read_keys(root):
    """All keys of the newest version: dict of str -> `Place` or, for small values, bytes.

    Raises:
        ValueError: for a damaged database, one that refers to files outside of `root`, and
            one larger than any checkpoint's.
    """
    return _Tree(root).keys()


class _Tree:
    def __init__(self, root):
        self._root = root
        self._sizes = {}
        self._found = {}
        self._nodes = 0
        self._bytes = 0

    def keys(self):
        path = contained(self._root, "manifest.ocdbt")
        body = self._body(Place(path, 0, file_size(path)), _MANIFEST)
        body.skip(16)
        if body.varint() != 0:
            raise damaged(self._root, "its manifest is of a kind that orbax does not write")
        body.varint(), body.varint(), body.skip(1)
        if body.varint():
            body.skip(4)
        files = self._files(body, "")
        count = body.count()
        if not count:
            return {}
        body.varints(count)
        heights = body.take(count)
        files_of, offsets, sizes = (body.varints(count) for _ in range(3))
        # The last of the versions is the newest.
        location = self._place(files, files_of[-1], offsets[-1], sizes[-1])
        self._walk(location, heights[-1], b"")
        return self._found

    def _body(self, place, magic):
        """The decompressed inside of a manifest or node, its frame checked."""
        self._spend(place.size)
        data = place.read()
        if len(data) < 18 or data[:4] != magic or int.from_bytes(data[4:12], "little") != len(data):
            raise damaged(self._root, "a node of its index is not where it should be")
        if crc32c(data[:-4]) != int.from_bytes(data[-4:], "little"):
            raise damaged(self._root, "a node of its index does not match its checksum")
        version, method = data[12], data[13]
        if version != 0 or method > 1:
            raise damaged(self._root, "a node of its index is of an unknown version")
        body = decompress(self._root, "zstd" if method else None, data[14:-4], _MAX_NODE_BYTES)
        self._spend(len(body))
        return Cursor(self._root, body)

    def _spend(self, size):
        """Nodes may be shared: a small file can spell out any number of keys."""
        self._bytes += size
        if self._bytes > _MAX_TREE_BYTES:
            raise damaged(self._root, "its index is larger than any checkpoint needs")

    def _files(self, body, transitive):
        """The data file table: list of (path, part of it that children inherit)."""
        count = body.count()
        prefixes = [0] + body.varints(max(count - 1, 0))
        suffixes, bases = body.varints(count), body.varints(count)
        files, previous = [], b""
        for prefix, suffix, base in zip(prefixes, suffixes, bases, strict=False):
            if prefix > len(previous) or not base <= prefix + suffix <= _MAX_KEY_BYTES:
                raise damaged(self._root, "a file name in its index has an impossible length")
            previous = previous[:prefix] + body.take(suffix)
            inherited = transitive + self._text(previous[:base])
            files.append((inherited + self._text(previous[base:]), inherited))
        return files

    def _place(self, files, index, offset, size):
        if index >= len(files):
            raise damaged(self._root, "its index refers to a file it does not list")
        relative, inherited = files[index]
        if relative not in self._sizes:
            path = contained(self._root, relative)
            if not path.exists():
                raise damaged(self._root, f"its data file {shown(relative)} is missing")
            self._sizes[relative] = (path, file_size(path))
        path, available = self._sizes[relative]
        if offset + size > available:
            raise damaged(self._root, f"its data file {shown(relative)} is cut off")
        return Place(path, offset, size), inherited

    def _walk(self, location, height, prefix):
        place, transitive = location
        self._nodes += 1
        if height > _MAX_HEIGHT or self._nodes > _MAX_NODES:
            raise damaged(self._root, "its index has more nodes than any checkpoint needs")
        body = self._body(place, _NODE)
        if body.take(1)[0] != height:
            raise damaged(self._root, "a node of its index is at the wrong height")
        files = self._files(body, transitive)
        keys, shared = self._node_keys(body, height)
        if height:
            columns = [body.varints(len(keys)) for _ in range(6)][:3]
            for key, length, *entry in zip(keys, shared, *columns, strict=True):
                self._walk(self._place(files, *entry), height - 1, prefix + key[:length])
            return
        sizes, kinds = body.varints(len(keys)), body.varints(len(keys))
        outside = [i for i, kind in enumerate(kinds) if kind == 1]
        ids, offsets = body.varints(len(outside)), body.varints(len(outside))
        places = dict(zip(outside, zip(ids, offsets, strict=True), strict=True))
        for i, (key, size) in enumerate(zip(keys, sizes, strict=True)):
            if kinds[i] > 1:
                raise damaged(self._root, "a value in its index is of an unknown kind")
            name = self._text(prefix + key)
            if name in self._found or len(self._found) == _MAX_KEYS:
                raise damaged(self._root, "its index lists a key twice, or far too many")
            self._found[name] = (
                self._place(files, *places[i], size)[0] if i in places else body.take(size)
            )

    def _node_keys(self, body, height):
        """Keys of a node without the prefix it inherits, and how much children inherit."""
        count = body.count()
        if not 0 < count <= _MAX_KEYS - len(self._found):
            raise damaged(self._root, "a node of its index has no keys, or far too many")
        prefixes, suffixes = [0] + body.varints(count - 1), body.varints(count)
        shared = body.varints(count) if height else [0] * count
        keys, previous = [], b""
        for prefix, suffix, common in zip(prefixes, suffixes, shared, strict=True):
            length = prefix + suffix
            if prefix > len(previous) or length > _MAX_KEY_BYTES or common > length:
                raise damaged(self._root, "a key in its index has an impossible length")
            self._spend(length)
            previous = previous[:prefix] + body.take(suffix)
            keys.append(previous)
        return keys, shared

    def _text(self, raw):
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise damaged(self._root, f"the name {shown(raw)} in its index is not text") from None
