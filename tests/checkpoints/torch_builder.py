"""Writes files as `torch.save` does, and files as it never would, without PyTorch."""

import struct

PROTO, STOP, MARK, REDUCE = b"\x80\x02", b".", b"(", b"R"
EMPTY_DICT, EMPTY_TUPLE, SETITEMS = b"}", b")", b"u"


def text(value):
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def integer(value):
    return b"J" + struct.pack("<i", value)


def sequence(*items):
    return MARK + b"".join(items) + b"t"


def name(module, attribute):
    return f"c{module}\n{attribute}\n".encode()


def mapping(items):
    """Pickle of a dict whose values are pickles."""
    pairs = b"".join(text(key) + value for key, value in items.items())
    return EMPTY_DICT + MARK + pairs + SETITEMS


def storage(key, kind="Float", size=4, location="cpu"):
    kind = name("torch", f"{kind}Storage")
    return sequence(text("storage"), kind, text(key), text(location), integer(size)) + b"Q"


def tensor(stored, offset=0, shape=(2, 2), strides=(2, 1), rebuild="_rebuild_tensor_v2"):
    """Pickle of a tensor over the pickle of a storage."""
    shape, strides = (sequence(*map(integer, sizes)) for sizes in (shape, strides))
    hooks = name("collections", "OrderedDict") + EMPTY_TUPLE + REDUCE
    arguments = sequence(stored, integer(offset), shape, strides, b"\x89", hooks)
    return name("torch._utils", rebuild) + arguments + REDUCE


def program(body):
    return PROTO + body + STOP


def torch_file(path, pickled, storages=(), stem="archive", **changes):
    """Write an archive with the pickle and `storages`, dict of key to bytes."""
    entries = {f"{stem}/data.pkl": pickled, f"{stem}/byteorder": b"little"}
    entries |= {f"{stem}/data/{key}": data for key, data in dict(storages).items()}
    path.write_bytes(archive(list(entries.items()), **changes))
    return path


def archive(entries, local=None, central=None, end=None, tail=b"", gap=b""):
    """A zip of stored entries, as strange as asked for.

    Args:
        entries: list of (name, bytes).
        local, central: dict of entry name to the header fields to falsify: `flags`, `method`,
            `packed`, `size`, `offset`, `extra`, `name`.
        end: dict of fields of the end record to falsify: `count`, `size`, `offset`.
        tail, gap: bytes after the archive, and between the entries and the directory.
    """
    body, directory = b"", b""
    for entry, data in entries:
        fields = {"flags": 0x800, "method": 0, "packed": len(data), "size": len(data)}
        fields |= {"offset": len(body), "extra": b"", "name": entry}
        here = fields | (local or {}).get(entry, {})
        there = fields | (central or {}).get(entry, {})
        encoded = here["name"].encode()
        body += struct.pack(
            *("<4s5H3L2H", b"PK\3\4", 0, here["flags"], here["method"], 0, 0, 0),
            *(here["packed"], here["size"], len(encoded), len(here["extra"])),
        )
        body += encoded + here["extra"] + data
        encoded = there["name"].encode()
        directory += struct.pack(
            *("<4s6H3L5H2L", b"PK\1\2", 0, 0, there["flags"], there["method"], 0, 0, 0),
            *(there["packed"], there["size"], len(encoded), len(there["extra"])),
            *(0, 0, 0, 0, there["offset"]),
        )
        directory += encoded + there["extra"]
    fields = {"count": len(entries), "size": len(directory), "offset": len(body) + len(gap)}
    fields |= end or {}
    record = struct.pack(
        *("<4s4H2LH", b"PK\5\6", 0, 0, fields["count"] & 0xFFFF, fields["count"] & 0xFFFF),
        *(fields["size"], fields["offset"], 0),
    )
    return body + gap + directory + record + tail
