"""Archives of text files, OpenWebText's among them, read as a stream and never unpacked to disk.

OpenWebText has no builder in TFDS. It is published as an archive of archives: `openwebtext.tar.xz`
holds `urlsf_subset??-*_data.xz`, and each of these is a tar file of `.txt` documents.
"""

import posixpath
import tarfile

from keras_elf.data.sources import files
from keras_elf.data.sources.lines import FileSource

_MAX_DEPTH = 2
_TAR = (".tar", ".tgz", ".txz", ".tbz2")


def is_archive(path):
    """Whether the name is that of a tar file, or of a part of OpenWebText."""
    name = str(path).lower()
    return files.stem_extension(name) == ".tar" or name.endswith((*_TAR, "_data.xz"))


class ArchiveSource(FileSource):
    """The text files in tar archives, one document a file, in the archive's order.

    Members are read in place: nothing is written, so a hostile name can do no harm, and is
    refused all the same, as is a member that is not a plain file, or larger than a document may be.

    Args:
        paths: list of str. `.tar`, also compressed, or OpenWebText's `*_data.xz`.
    """

    def read(self, path):
        extension = _compression(path)
        try:
            with open(path, "rb") as raw:
                yield from _members(files.decompressed(raw, extension, path), path, depth=1)
        except (*files._DAMAGED, tarfile.TarError, OSError) as error:
            raise ValueError(
                f"{path!r} is not a readable archive, truncated or damaged: {error}."
            ) from None
        except ValueError as error:
            message = str(error)
            raise ValueError(message if path in message else f"{path!r} {message}") from None


def _members(stream, name, depth):
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            if member.isdir():
                continue
            place = f"{name!r}, member {member.name!r:.100}"
            parts = member.name.replace("\\", "/").split("/")
            if member.name.startswith(("/", "\\")) or ".." in parts or ":" in parts[0]:
                raise ValueError(f"{place} points outside the archive. It is refused.")
            if not member.isfile():
                raise ValueError(f"{place} is a link or a device, not a file. It is refused.")
            if posixpath.basename(member.name).startswith("."):
                continue  # what operating systems leave behind
            lower = member.name.lower()
            if lower.endswith(".txt"):
                yield from _document(archive, member, place)
            elif is_archive(lower):
                if depth == _MAX_DEPTH:
                    raise ValueError(f"{place}: archives are nested too deeply.")
                inner = archive.extractfile(member)
                inner = files.decompressed(_Told(inner), _compression(lower), place)
                yield from _members(inner, f"{name}/{member.name}", depth + 1)


def _document(archive, member, place):
    if member.size > files.MAX_LINE_BYTES:
        raise ValueError(
            f"{place} has {member.size} bytes, more than a document may have "
            f"({files.MAX_LINE_BYTES // 2**20} MiB)."
        )
    text = files.decode(archive.extractfile(member).read(), f"{place}: byte ", first=True)
    if text.strip():
        yield place, text


def _compression(name):
    name = str(name).lower()
    short = {".tgz": ".gz", ".txz": ".xz", ".tbz2": ".bz2"}
    for ending in (*files.COMPRESSIONS, *short):
        if name.endswith(ending):
            return short.get(ending, ending)
    return ""


class _Told:
    """A member of a stream, which cannot tell its place, with a count of what was read."""

    def __init__(self, file):
        self.file, self.count = file, 0

    def read(self, size=-1):
        data = self.file.read(size)
        self.count += len(data)
        return data

    def tell(self):
        return self.count

    def seekable(self):
        return False

    def close(self):
        self.file.close()
