"""What a repository holds at a commit, and which of it is wanted."""

import fnmatch
import re
from dataclasses import dataclass

from keras_elf.hub.errors import HubError

_STEP = re.compile(r"((?:.*/)?checkpoint_(\d+))(?:/.*)?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHOWN = 12


@dataclass(frozen=True)
class Entry:
    """One file: its size in bytes and its digest (64 digits: sha256, 40: git's sha1).

    The digest is `None` for a copy in a cache without links, where no record names it.
    """

    size: int
    digest: str | None


@dataclass(frozen=True)
class Listing:
    """The files of a repository at `commit`: `entries[name]` is an `Entry`."""

    commit: str
    entries: dict


def from_model_info(info):
    """The `Listing` in the hub's answer; what could not be trusted later is refused here."""
    if not _COMMIT.fullmatch(str(info.sha)):
        raise HubError(f"The hub named a commit that is none: {info.sha!r}. Check HF_ENDPOINT.")
    entries = {}
    for file in info.siblings or ():
        size, digest = file.size, file.blob_id
        if file.lfs is not None:
            size, digest = file.lfs.size, file.lfs.sha256
        # `None` means a copy that carries no digest; here it must have one.
        entries[file.rfilename] = Entry(size, digest or "")
    return Listing(info.sha, entries)


def is_digest(text):
    """Whether `text` is a sha256 or a git sha1 in lower-case hexadecimal digits."""
    return isinstance(text, str) and re.fullmatch(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", text)


def is_commit(text):
    """Whether `text` is a full commit hash, which never means something else later."""
    return bool(_COMMIT.fullmatch(text))


def choose(listing, patterns, repo_id):
    """Names out of `listing` that `patterns` ask for, sorted.

    Args:
        listing: Listing.
        patterns: list of str and callables. A str with a wildcard (`*`, `?`, `[`) takes what
            matches, none included; a str without one names a file that must be there; a
            callable gets the list of names and returns those wanted.
        repo_id: str. For messages.
    """
    names = sorted(listing.entries)
    found = set()
    for pattern in patterns:
        if callable(pattern):
            found.update(pattern(names))
        elif re.search(r"[*?\[]", pattern):
            found.update(fnmatch.filter(names, pattern))
        elif pattern in listing.entries:
            found.add(pattern)
        else:
            raise HubError(f"{repo_id!r} has no file {pattern!r}. It holds: {shown(names)}", "file")
    if not found:
        wanted = [p for p in patterns if isinstance(p, str)] or "what was asked for"
        raise HubError(
            f"{repo_id!r} has no file like {wanted}. It holds: {shown(names)}",
            "file",
        )
    for name in found:
        _check(name, listing.entries[name], repo_id)
    return sorted(found)


def newest_checkpoint(names):
    """Return the names of the one `checkpoint_<step>` with the highest step.

    A released checkpoint is a file `checkpoint_<step>` or a directory of that name; only
    the latest one is worth a download.

    Args:
        names: iterable of str. Paths inside a repository, with `/` between folders.

    Returns:
        list of str. One file, or all files below one directory, sorted. Empty if there is
        no checkpoint.

    Raises:
        HubError: if two places hold a checkpoint of the highest step.
    """
    found = {}
    for name in names:
        match = _STEP.fullmatch(name)
        if match:
            found.setdefault((int(match.group(2)), match.group(1)), []).append(name)
    if not found:
        return []
    newest = max(found)
    same = sorted(place for step, place in found if step == newest[0])
    if len(same) > 1:
        raise HubError(f"Several checkpoints are of step {newest[0]}: {same}. Name one.", "file")
    return sorted(found[newest])


def shown(names):
    """A list of names short enough for a message."""
    names = list(names)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (", ".join(repr(name[:80]) for name in names[:_SHOWN]) or "nothing") + more


def _check(name, entry, repo_id):
    parts = name.split("/")
    if re.search(r'[\\:\x00-\x1f<>"|]', name) or any(part in ("", ".", "..") for part in parts):
        raise HubError(
            f"{repo_id!r} holds a file whose name leads out of its directory: {name!r}. It is "
            "not downloaded; tell the owners of the repository."
        )
    size = entry.size
    if (
        not isinstance(size, int)
        or size < 0
        or not (entry.digest is None or is_digest(entry.digest))
    ):
        raise HubError(
            f"The hub does not say size and hash of {name!r} in {repo_id!r}, so the file could "
            "not be checked. Check HF_ENDPOINT: a mirror must serve the hub's own listing."
        )
