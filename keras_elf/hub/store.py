"""The hub client's cache on disk: `blobs/<digest>`, `snapshots/<commit>/<name>`, `refs/`.

The layout is the documented one of `huggingface_hub`, so that its own tools and any other
library find what was downloaded here, and the other way round. One file is added: a record
of what a commit holds and which blobs were verified.
"""

import contextlib
import hashlib
import json
import os
import tempfile

from keras_elf.hub.errors import HubError
from keras_elf.hub.listing import Entry, Listing, is_commit, is_digest

_FORMAT = 1


class RepoCache:
    """Paths and records of one repository in the cache of `huggingface_hub`."""

    def __init__(self, repo_id):
        from huggingface_hub import constants

        self.repo_id = repo_id
        root = os.path.abspath(constants.HF_HUB_CACHE)
        name = "--".join(("models", *repo_id.split("/")))
        self.folder = os.path.join(root, name)
        self.locks = os.path.join(root, ".locks", name)

    def snapshot(self, commit):
        return os.path.join(self.folder, "snapshots", commit)

    def pointer(self, commit, name):
        return os.path.join(self.snapshot(commit), *name.split("/"))

    def blob(self, digest):
        return os.path.join(self.folder, "blobs", digest)

    def commit_of(self, revision):
        """The commit that `revision` was when the hub last said so, or `None`."""
        if is_commit(revision):
            return revision
        try:
            with open(os.path.join(self.folder, "refs", *revision.split("/"))) as file:
                commit = file.read(64).strip()
        except OSError:
            return None
        return commit if is_commit(commit) else None

    def remember(self, revision, listing, verified):
        """Note the commit of `revision` and the record, where the cache can be written."""
        with contextlib.suppress(OSError):
            if not is_commit(revision) and self.commit_of(revision) != listing.commit:
                _write(os.path.join(self.folder, "refs", *revision.split("/")), listing.commit)
            files = {n: [e.size, e.digest] for n, e in sorted(listing.entries.items())}
            record = json.dumps({"format": _FORMAT, "files": files, "verified": verified})
            path = self._record(listing.commit)
            if _read(path) != record:
                _write(path, record)

    def recall(self, commit):
        """`(Listing or None, verified)` of a commit from the record of an earlier call."""
        try:
            record = json.loads(_read(self._record(commit)) or "null")
            if record["format"] != _FORMAT:
                return None, {}
            entries = {name: Entry(*values) for name, values in record["files"].items()}
            return Listing(commit, entries), dict(record["verified"])
        except (ValueError, TypeError, KeyError):
            return None, {}

    def on_disk(self, commit):
        """The `Listing` of what is there of a commit that another program downloaded."""
        top, entries = self.snapshot(commit), {}
        for folder, _, files in os.walk(top):
            for file in files:
                path = os.path.join(folder, file)
                if os.path.exists(path):
                    digest = os.path.basename(os.readlink(path)) if os.path.islink(path) else None
                    name = os.path.relpath(path, top).replace(os.sep, "/")
                    known = digest if is_digest(digest) else None
                    entries[name] = Entry(os.path.getsize(path), known)
        return Listing(commit, entries) if entries else None

    def link(self, commit, name, digest):
        """Make the snapshot's `name` show the blob."""
        pointer, blob = self.pointer(commit, name), self.blob(digest)
        os.makedirs(os.path.dirname(pointer), exist_ok=True)
        if os.path.lexists(pointer):
            os.unlink(pointer)
        try:
            os.symlink(os.path.relpath(blob, os.path.dirname(pointer)), pointer)
        except OSError:
            # No links on this file system: the client's own cache does the same there.
            os.replace(blob, pointer)

    def verify(self, commit, name, entry, verified):
        """Return the sha256 of a file in the cache; refuse and remove a damaged one.

        A blob is read once: its size and time of change are remembered with its hash, and
        it is read again when either differs.
        """
        pointer = self.pointer(commit, name)
        stat = os.stat(pointer)
        seen = [stat.st_size, stat.st_mtime_ns]
        known = verified.get(entry.digest)
        if isinstance(known, list) and known[:2] == seen:
            return known[2]
        sha256, git = hashes(pointer)
        if stat.st_size != entry.size or entry.digest not in (None, sha256, git):
            real = os.path.realpath(pointer)
            raise damaged(self.repo_id, name, entry, sha256, git, (pointer, real))
        if entry.digest is not None:
            verified[entry.digest] = [*seen, sha256]
        return sha256

    def _record(self, commit):
        return os.path.join(self.folder, ".keras_elf", f"{commit}.json")


def hashes(path):
    """`(sha256, git's sha1)` of a file, read once."""
    sha256 = hashlib.sha256()
    git = hashlib.sha1(b"blob %d\0" % os.path.getsize(path), usedforsecurity=False)
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            sha256.update(block)
            git.update(block)
    return sha256.hexdigest(), git.hexdigest()


def damaged(repo_id, name, entry, sha256, git, paths):
    """Remove `paths` and return the error that says which file was wrong, and how."""
    for path in paths:
        with contextlib.suppress(OSError):
            os.unlink(path)
    left = [path for path in paths if os.path.lexists(path)]
    kind, found = ("sha256", sha256) if len(entry.digest or "") == 64 else ("git sha1", git)
    advice = (
        f"Delete {left[-1]!r} and call again"
        if left
        else f"The broken file was deleted ({paths[-1]!r}); call again"
    )
    return HubError(
        f"The file {name!r} of {repo_id!r} is damaged: its {kind} is {found}, the hub says "
        f"{entry.digest} and {entry.size} bytes. {advice} to download it anew.",
        "damaged",
    )


def _read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None


def _write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    descriptor, beside = tempfile.mkstemp(dir=os.path.dirname(path), suffix=".tmp")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise
