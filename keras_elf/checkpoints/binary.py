"""Small binary reading: varints that end, a checksum."""

from keras_elf.checkpoints.reading import damaged


class Cursor:
    """Reads bytes one field after the other and never beyond their end."""

    def __init__(self, path, data):
        self._path = path
        self._data = data
        self._position = 0

    def take(self, size):
        end = self._position + size
        if end > len(self._data):
            raise damaged(self._path, "its index breaks off")
        field = self._data[self._position : end]
        self._position = end
        return field

    def skip(self, size):
        self.take(size)

    def varint(self):
        """Unsigned number of at most 64 bits, seven a byte, lowest first."""
        value = 0
        for shift in range(0, 70, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise damaged(self._path, "a number in its index does not end")

    def count(self):
        """A `varint` that says how many fields follow, so no more than there are bytes."""
        count = self.varint()
        if count > len(self._data) - self._position:
            raise damaged(self._path, "its index announces more than it holds")
        return count

    def varints(self, count):
        return [self.varint() for _ in range(count)]


def crc32c(data):
    """CRC-32C (Castagnoli) of `data`. `zlib.crc32` is of another polynomial."""
    value = 0xFFFFFFFF
    for byte in data:
        value = _TABLE[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


def _table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _table()
