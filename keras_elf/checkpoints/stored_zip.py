"""The table of contents of a zip archive whose entries are stored, not compressed."""

import struct

from keras_elf.checkpoints.reading import damaged, file_size, read_bytes, shown

_END = struct.Struct("<4s4H2LH")
_LOCATOR = struct.Struct("<4sLQL")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_HEADER = struct.Struct("<4s5H3L2H")
# A directory for ELF-L with optimizer state takes about 0.3 MB.
_MAX_DIRECTORY_BYTES = 16 * 2**20
_DATA_DESCRIPTOR_BYTES = 24
_ENCRYPTED = 0x1 | 0x40 | 0x2000


def stored_entries(path):
    """Where the entries of a zip archive lie: dict of name -> (offset, size, CRC-32).

    Stricter than `zipfile`, for archives as `torch.save` writes them: every byte of the
    file belongs to one entry or to the directory, and what is read is never more than
    what is there (no entry is compressed), so that no archive can unpack to more than
    its own size.

    Raises:
        ValueError: for compressed, encrypted, overlapping or duplicate entries, names
            that leave the archive, and sizes that do not add up to the file.
    """
    start, size, count = _directory(path)
    table = read_bytes(path, start, size)
    entries, headers, position = {}, [], 0
    for _ in range(count):
        name, header, place, position = _entry(path, table, position)
        if name in entries:
            raise damaged(path, f"the archive holds two entries {shown(name)}")
        entries[name] = place
        headers.append((header, name))
    if position != size:
        raise damaged(path, "the directory of the archive has bytes left over")
    end = 0
    for header, name in sorted(headers):
        if not end <= header <= end + (_DATA_DESCRIPTOR_BYTES if end else 0):
            raise damaged(path, f"the entry {shown(name)} overlaps another or leaves a gap")
        offset = _data_offset(path, header, name, start)
        end = offset + entries[name][0]
        if end > start:
            raise damaged(path, f"the entry {shown(name)} is longer than the archive")
        entries[name] = (offset, *entries[name])
    if start - end > _DATA_DESCRIPTOR_BYTES:
        raise damaged(path, "the archive has bytes that belong to no entry")
    return entries


def _directory(path):
    """Offset, size and number of entries of the central directory."""
    total = file_size(path)
    if total < _END.size:
        raise damaged(path, "too short for an archive")
    end = total - _END.size
    magic, *_, count, size, start, comment = _END.unpack(read_bytes(path, end, _END.size))
    if magic != b"PK\5\6" or comment:
        raise damaged(path, "the archive has no end record, as after a broken download")
    if end >= _LOCATOR.size + _END_64.size:
        located = read_bytes(path, end - _LOCATOR.size, _LOCATOR.size)
        magic, _, record, _ = _LOCATOR.unpack(located)
        if magic == b"PK\6\7":
            end -= _LOCATOR.size + _END_64.size
            magic, _, _, _, *_, count, size, start = _END_64.unpack(
                read_bytes(path, end, _END_64.size)
            )
            if magic != b"PK\6\6" or record != end:
                raise damaged(path, "the archive has a broken zip64 end record")
    if size > _MAX_DIRECTORY_BYTES or start + size != end or count * _ENTRY.size > size:
        raise damaged(path, "the sizes in the archive's end record do not add up to the file")
    return start, size, count


def _entry(path, table, position):
    """Name, header offset, (size, CRC-32) of the entry at `position`; the next position."""
    if position + _ENTRY.size > len(table):
        raise damaged(path, "the directory of the archive is cut off")
    fields = _ENTRY.unpack_from(table, position)
    magic, flags, method = fields[0], fields[3], fields[4]
    packed, size, name_length, extra_length, comment_length = fields[8:13]
    position += _ENTRY.size
    raw = table[position : position + name_length]
    extra = table[position + name_length : position + name_length + extra_length]
    position += name_length + extra_length + comment_length
    if magic != b"PK\1\2" or position > len(table):
        raise damaged(path, "the directory of the archive is broken")
    name = _checked_name(path, raw)
    if flags & _ENCRYPTED:
        raise damaged(path, f"the entry {shown(name)} is encrypted")
    if method != 0:
        raise damaged(path, f"the entry {shown(name)} is compressed, which torch never does")
    size, packed, header = _wide(path, name, extra, [size, packed, fields[16]])
    if size != packed:
        raise damaged(path, f"the entry {shown(name)} has two sizes")
    return name, header, (size, fields[7]), position


def _wide(path, name, extra, values):
    """`values` with those that say "see zip64" replaced from the extra field."""
    if 0xFFFFFFFF not in values:
        return values
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<2H", extra)
        body = extra[4 : 4 + length]
        if kind == 1 and len(body) >= 8 * values.count(0xFFFFFFFF):
            wide = iter(struct.unpack_from(f"<{len(body) // 8}Q", body))
            return [next(wide) if value == 0xFFFFFFFF else value for value in values]
        extra = extra[4 + length :]
    raise damaged(path, f"the entry {shown(name)} lacks its zip64 sizes")


def _checked_name(path, raw):
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise damaged(path, f"the entry name {shown(raw)} is not text") from None
    parts = name.split("/")
    if set(name) & set("\\\0:") or any(part in ("", ".", "..") for part in parts):
        raise damaged(path, f"the entry name {shown(name)} could leave the archive")
    return name


def _data_offset(path, header, name, limit):
    """Where the bytes of an entry start: its own header must agree with the directory."""
    encoded = name.encode("utf-8")
    if header + _HEADER.size + len(encoded) > limit:
        raise damaged(path, f"the entry {shown(name)} lies outside of the archive")
    raw = read_bytes(path, header, _HEADER.size + len(encoded))
    fields = _HEADER.unpack_from(raw)
    if (
        fields[0] != b"PK\3\4"
        or fields[2] & _ENCRYPTED
        or fields[3] != 0
        or fields[9] != len(encoded)
        or raw[_HEADER.size :] != encoded
    ):
        raise damaged(path, f"the entry {shown(name)} disagrees with the archive's directory")
    return header + _HEADER.size + len(encoded) + fields[10]
