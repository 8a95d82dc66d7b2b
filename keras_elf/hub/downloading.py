"""Downloading the chosen files of a repository, verified, or finding them in the cache."""

import contextlib
import logging
import os
import shutil
from dataclasses import dataclass, field

from keras_elf.hub import listing as listings
from keras_elf.hub.errors import UNREACHABLE, HubError
from keras_elf.hub.locks import locked
from keras_elf.hub.repositories import checked_repo_id, checked_revision
from keras_elf.hub.store import RepoCache, damaged, hashes
from keras_elf.hub.transfer import Hub

logger = logging.getLogger("keras_elf")


@dataclass(frozen=True)
class Download:
    """Files of a repository on this machine.

    Args:
        path: str. The snapshot directory. Its files are links into the cache of
            `huggingface_hub`, and it may hold more files than were asked for.
        repo_id: str. The repository.
        revision: str. The branch, tag or commit asked for.
        commit: str. The commit it is.
        files: dict. Name of each file asked for to its sha256.
    """

    path: str
    repo_id: str
    revision: str
    commit: str
    files: dict = field(default_factory=dict)


def download(repo_id, patterns, revision=None, token=None):
    """Bring files of a repository on the Hugging Face hub to this machine.

    The hub is asked once what the revision holds; only missing files are fetched, an
    interrupted one from where it stopped. A full commit hash whose files are there needs no
    connection, and neither does anything in the cache with `HF_HUB_OFFLINE=1`. If the hub
    cannot be reached, the copy in the cache is used and a warning says so.

    Each file's content is compared with the hash that the hub's listing states (sha256, or
    git's sha1 for small files) when it arrives, and again whenever its size or time of
    change differ from those noted then; it is not read on every call.

    `HF_HOME`, `HF_HUB_CACHE`, `HF_ENDPOINT`, `HF_TOKEN`, `HF_HUB_OFFLINE`,
    `HF_HUB_ETAG_TIMEOUT`, `HF_HUB_DOWNLOAD_TIMEOUT` and `HF_HUB_DISABLE_PROGRESS_BARS` work
    as everywhere with `huggingface_hub`.

    Args:
        repo_id: str. `"owner/name"`.
        patterns: str, callable, or list of them. A str with a wildcard takes the files that
            match; a str without one names a file that must be there; a callable gets the
            list of names and returns those wanted, as `newest_checkpoint` does.
        revision: str or None. Branch, tag or commit. Defaults to `None`, which is `"main"`.
        token: str, bool or None. An access token; `True` for the saved one, `False` for
            none. Defaults to `None`: `HF_TOKEN` or the saved one, if there is one.

    Returns:
        A `Download`.

    Raises:
        HubError: with the reason, and what to do about it.
    """
    repo_id, revision = checked_repo_id(repo_id), checked_revision(revision)
    patterns = [patterns] if isinstance(patterns, str) or callable(patterns) else list(patterns)
    cache = RepoCache(repo_id)
    hub = Hub(token)
    listing, verified, failure = _listing(hub, cache, revision)
    names = listings.choose(listing, patterns, repo_id)
    missing = [n for n in names if not os.path.exists(cache.pointer(listing.commit, n))]
    if missing and failure is not None:
        raise HubError(
            f"The cache holds {repo_id!r} only in part: {listings.shown(missing)} is missing. "
            f"{failure}",
            failure.reason,
        )
    try:
        if missing:
            _check_space(cache, [listing.entries[name] for name in missing])
        for name in missing:
            _fetch(hub, cache, listing, name, verified)
        files = {n: cache.verify(listing.commit, n, listing.entries[n], verified) for n in names}
    except OSError as error:
        raise hub.error(error, repo_id, revision) from None
    cache.remember(revision, listing, verified)
    return Download(cache.snapshot(listing.commit), repo_id, revision, listing.commit, files)


def _listing(hub, cache, revision):
    """`(listing, verified, failure)`: from the hub, else from the cache with the reason why."""
    commit = cache.commit_of(revision)
    listing, verified = cache.recall(commit) if commit else (None, {})
    if listing is not None and commit == revision:
        return listing, verified, None
    try:
        found = hub.listing(cache.repo_id, revision)
    except HubError as error:
        if error.reason not in UNREACHABLE or commit is None:
            raise
        listing = listing or cache.on_disk(commit)
        if listing is None:
            raise
        if error.reason != "offline":
            logger.warning(
                "Using the copy of %r in the cache (commit %.8s): %s", cache.repo_id, commit, error
            )
        return listing, verified, error
    if commit != found.commit:
        verified = {**verified, **cache.recall(found.commit)[1]}
    return found, verified, None


def _fetch(hub, cache, listing, name, verified):
    """Bring one file into the cache; a blob exists only once its hash was found right."""
    entry, commit = listing.entries[name], listing.commit
    blob = cache.blob(entry.digest)
    os.makedirs(os.path.dirname(blob), exist_ok=True)
    os.makedirs(cache.locks, exist_ok=True)
    # The same lock that the client takes, so that both never fetch a file at once.
    lock = os.path.join(cache.locks, f"{entry.digest}.lock")
    with locked(lock, f"downloading {name} of {cache.repo_id}"):
        if not os.path.exists(blob):
            partial = f"{blob}.incomplete"
            resumed = os.path.exists(partial)
            hub.fetch(cache.repo_id, commit, name, entry.size, partial)
            found = hashes(partial)
            if entry.digest not in found and resumed:
                # The part of an earlier call may be to blame: once more from the start.
                os.unlink(partial)
                hub.fetch(cache.repo_id, commit, name, entry.size, partial)
                found = hashes(partial)
            if entry.digest not in found:
                raise damaged(cache.repo_id, name, entry, *found, (partial,))
            with contextlib.suppress(OSError):
                os.chmod(partial, 0o644)
            os.replace(partial, blob)
            stat = os.stat(blob)
            verified[entry.digest] = [stat.st_size, stat.st_mtime_ns, found[0]]
        cache.link(commit, name, entry.digest)


def _check_space(cache, entries):
    needed = 0
    for entry in entries:
        blob = cache.blob(entry.digest)
        if not os.path.exists(blob):
            partial = f"{blob}.incomplete"
            needed += entry.size - (os.path.getsize(partial) if os.path.exists(partial) else 0)
    place = cache.folder
    while not os.path.exists(place):
        place = os.path.dirname(place)
    free = shutil.disk_usage(place).free
    if needed > free:
        raise HubError(
            f"The download needs {needed / 1e6:,.0f} MB and {place!r} has {free / 1e6:,.0f} MB "
            "free. Free some, or set HF_HOME to a directory on another disk.",
            "disk_full",
        )
