"""Files as lines of UTF-8, compressed or not, in bounded memory and with errors for people."""

import bz2
import glob
import gzip
import hashlib
import lzma
import os
import zlib

MAX_LINE_BYTES = 64 * 2**20
# Text that compresses better than this was made to fill a disk.
MAX_EXPANSION = 2000
_FREE_BYTES = 256 * 2**20
_DAMAGED = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)
COMPRESSIONS = (".gz", ".xz", ".bz2", ".zst")


def expand_paths(spec):
    """The files that a path, a glob pattern or a list of them names, in sorted order.

    Args:
        spec: str, path or list of them.

    Returns:
        A list of str, existing files.

    Raises:
        ValueError: if a pattern matches nothing, or a path is missing or a directory.
    """
    if isinstance(spec, (list, tuple)):
        if not spec:
            raise ValueError("`spec` must name at least one file. Received an empty list.")
        return [path for entry in spec for path in expand_paths(entry)]
    path = os.path.expanduser(os.fspath(spec))
    if os.path.isdir(path):
        raise ValueError(
            f"`spec` must name a file. Received: {path!r}, which is a directory. Name the files in "
            f"it, for example {os.path.join(path, '*.jsonl')!r}."
        )
    if os.path.exists(path):
        return [path]
    matches = sorted(p for p in glob.glob(path, recursive=True) if os.path.isfile(p))
    if not matches:
        kind = "pattern matches no file" if glob.has_magic(path) else "file does not exist"
        raise ValueError(f"`spec`: this {kind}: {path!r}")
    return matches


def open_bytes(path):
    """Open a file for reading bytes, decompressed by its last extension."""
    extension = os.path.splitext(path)[1].lower()
    try:
        raw = open(path, "rb")
    except OSError as error:
        raise ValueError(f"{path!r} cannot be read: {error.strerror}.") from None
    return decompressed(raw, extension, path)


def decompressed(raw, extension, name):
    """The decompressed bytes of an open file; the file itself if the extension is none."""
    openers = {".gz": gzip.GzipFile, ".xz": lzma.LZMAFile, ".bz2": bz2.BZ2File}
    if extension == ".zst":
        return _Guarded(_zstd(name)(raw), raw)
    if extension not in openers:
        return raw
    keyword = "fileobj" if extension == ".gz" else "filename"
    return _Guarded(openers[extension](**{keyword: raw}, mode="rb"), raw)


class _Guarded:
    """A decompressing file that stops when it has grown out of all proportion."""

    def __init__(self, file, raw):
        self.file, self.raw, self.count = file, raw, 0

    def read(self, size=-1):
        return self._counted(self.file.read(size))

    def readline(self, size=-1):
        return self._counted(self.file.readline(size))

    def _counted(self, data):
        self.count += len(data)
        if self.count > _FREE_BYTES and self.count > MAX_EXPANSION * max(1, self.raw.tell()):
            raise ValueError(
                f"decompresses to more than {MAX_EXPANSION} times its size, which no text does."
            )
        return data

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.raw.close()


def read_lines(path):
    """Yield `(number, line)` of a UTF-8 file, line ends kept, a byte-order mark dropped.

    Raises:
        ValueError: with file and line, for bytes that are not UTF-8, a line above
            `MAX_LINE_BYTES`, or compressed data that is truncated or damaged.
    """
    number = 0
    try:
        with open_bytes(path) as file:
            while data := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(data) > MAX_LINE_BYTES:
                    raise ValueError(
                        f"line {number} is longer than {MAX_LINE_BYTES // 2**20} MiB. Is it text "
                        "with one entry a line?"
                    )
                yield number, decode(data, f"line {number}, byte ", first=number == 1)
    except _DAMAGED as error:
        raise ValueError(
            f"{path!r} is truncated or damaged after line {number}: {error}. Fetch it anew."
        ) from None
    except OSError as error:
        reason = error.strerror or error
        raise ValueError(f"{path!r} cannot be read after line {number}: {reason}.") from None
    except ValueError as error:
        message = str(error)
        if repr(path) not in message:
            message = f"{path!r}{', ' if message.startswith('line') else ' '}{message}"
        raise ValueError(message) from None


def split_lines(text):
    """The lines of a text that ends in no line end of its own, as files have lines.

    `str.splitlines` also cuts at marks that may stand within a line of text or JSON, such as
    U+2028.
    """
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if lines[-1] == "" else lines


def read_whole(path):
    """The whole text of a file of at most `MAX_LINE_BYTES`."""
    try:
        with open_bytes(path) as file:
            data = file.read(MAX_LINE_BYTES + 1)
    except (*_DAMAGED, OSError) as error:
        raise ValueError(f"{path!r} is truncated or damaged: {error}. Fetch it anew.") from None
    if len(data) > MAX_LINE_BYTES:
        raise ValueError(
            f"{path!r} is larger than {MAX_LINE_BYTES // 2**20} MiB, too much for one document. "
            "Cut it into lines or records."
        )
    return decode(data, f"{path!r}: byte ", first=True)


def decode(data, place, first=False):
    """Bytes as str; `ValueError` that names the place and the byte if they are not UTF-8."""
    try:
        # Editors on Windows put a byte-order mark at the start of a file.
        return data.decode("utf-8-sig" if first else "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{place}{error.start}: not UTF-8 text ({error.reason}). Convert the file, for example "
            "with iconv."
        ) from None


def stem_extension(path):
    """The extension that tells the format: `.jsonl` of `a.jsonl.gz`."""
    base, extension = os.path.splitext(str(path).lower())
    return os.path.splitext(base)[1] if extension in COMPRESSIONS else extension


def fingerprint(paths):
    """Hex digest of the contents of files, in their order."""
    digest = hashlib.blake2b(digest_size=16)
    for path in paths:
        with open(path, "rb") as file:
            # With the lengths, no byte can move from one file to the next unseen.
            digest.update(f"{os.path.getsize(path)}\n".encode())
            while block := file.read(2**20):
                digest.update(block)
    return digest.hexdigest()


def _zstd(name):
    try:
        try:
            from compression import zstd  # Python 3.14
        except ImportError:
            from backports import zstd
    except ImportError:
        raise ValueError(
            f"{name!r} is compressed with zstd. Install `backports.zstd`, or decompress it."
        ) from None
    return zstd.ZstdFile
