"""Where the values of a msgpack file lie, found without loading them.

The `msgpack` package buffers an object whole before it hands it out or skips it, which for
the optimizer state of a checkpoint means most of the file. Flax needs few of the types,
so that a walk which seeks over the bytes of arrays takes memory for their names only.
"""

import dataclasses
import struct

from keras_elf.checkpoints.reading import MAX_VALUES, damaged, shown

_MAX_DEPTH = 32
_MAX_TEXT_BYTES = 4096


@dataclasses.dataclass(frozen=True)
class Blob:
    """Bytes `offset : offset + size` of the file. `code` is an extension's, or `None`."""

    code: int | None
    offset: int
    size: int


class Layout:
    """Walks the values of an open file one after the other.

    Args:
        path: the file's path, for messages.
        file: the file, open for reading bytes.
        start: int. Where to begin.
        end: int. No value may reach beyond. Defaults to the file's end.
    """

    def __init__(self, path, file, start, end):
        self._path = path
        self._file = file
        self._end = end
        self._values = 0
        file.seek(start)

    def value(self, depth=0):
        """The next value: dict, list, str, number, bool, `None` or `Blob`."""
        self._values += 1
        if depth > _MAX_DEPTH or self._values > MAX_VALUES:
            raise damaged(self._path, "its values are nested too deep or too many")
        tag = self._take(1)[0]
        if tag <= 0x7F:
            return tag
        if tag >= 0xE0:
            return tag - 0x100
        if tag <= 0x8F:
            return self._map(tag & 0x0F, depth)
        if tag <= 0x9F:
            return self._array(tag & 0x0F, depth)
        if tag <= 0xBF:
            return self._text(tag & 0x1F)
        if tag in _CONSTANTS:
            return _CONSTANTS[tag]
        if tag in _NUMBERS:
            return struct.unpack(_NUMBERS[tag], self._take(struct.calcsize(_NUMBERS[tag])))[0]
        if tag not in _SIZED:
            raise damaged(self._path, f"the byte {tag:#x} begins no msgpack value")
        kind, width = _SIZED[tag]
        size = int.from_bytes(self._take(width), "big") if width else 1 << (tag - 0xD4)
        if kind == "map":
            return self._map(size, depth)
        if kind == "array":
            return self._array(size, depth)
        if kind == "text":
            return self._text(size)
        code = struct.unpack("b", self._take(1))[0] if kind == "extension" else None
        return self._blob(code, size)

    def finish(self):
        """Refuse bytes after the last value."""
        if self._file.tell() != self._end:
            raise damaged(self._path, "its contents end before its bytes do")

    def _left(self):
        return self._end - self._file.tell()

    def _take(self, size):
        if size > self._left():
            raise damaged(self._path, "it is cut off")
        data = self._file.read(size)
        if len(data) != size:
            raise damaged(self._path, "it changed while it was read")
        return data

    def _blob(self, code, size):
        offset = self._file.tell()
        if size > self._left():
            raise damaged(self._path, f"it is cut off, or a size of {size:,} bytes is wrong")
        self._file.seek(offset + size)
        return Blob(code, offset, size)

    def _text(self, size):
        if size > _MAX_TEXT_BYTES:
            raise damaged(self._path, f"a name of {size:,} bytes")
        try:
            return self._take(size).decode("utf-8")
        except UnicodeDecodeError:
            raise damaged(self._path, "a name that is not text") from None

    def _array(self, count, depth):
        if count > self._left():
            raise damaged(self._path, f"a list of {count:,} values in fewer bytes")
        return [self.value(depth + 1) for _ in range(count)]

    def _map(self, count, depth):
        if 2 * count > self._left():
            raise damaged(self._path, f"a map of {count:,} entries in fewer bytes")
        entries = {}
        for _ in range(count):
            key = self.value(depth + 1)
            if not isinstance(key, str) or key in entries:
                raise damaged(self._path, f"the key {shown(key)} comes twice or is not a name")
            entries[key] = self.value(depth + 1)
        return entries


_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
# Tag -> kind and how many bytes hold the size; 0 for the five fixed sizes 1, 2, 4, 8, 16.
_SIZED = {
    **{0xC4 + i: ("blob", 1 << i) for i in range(3)},
    **{0xC7 + i: ("extension", 1 << i) for i in range(3)},
    **{0xD4 + i: ("extension", 0) for i in range(5)},
    **{0xD9 + i: ("text", 1 << i) for i in range(3)},
    **{0xDC + i: ("array", 2 << i) for i in range(2)},
    **{0xDE + i: ("map", 2 << i) for i in range(2)},
}
