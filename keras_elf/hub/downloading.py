"""Files of a repository on the Hugging Face hub, downloaded by its client and verified.

`huggingface_hub` does the transfer: retries, resuming, locks, cache. What it does not do is
here: it compares no file with the hub's hash, takes no choice of files that depends on the
listing, and its offline mode cannot tell a cache that is complete from one that is not.
"""

import contextlib
import hashlib
import json
import logging
import os
import re
from dataclasses import dataclass, field

from keras_elf.atomic_file import replaced
from keras_elf.hub.errors import UNREACHABLE, HubError, explain
from keras_elf.hub.listing import choose, shown
from keras_elf.version import __version__

logger = logging.getLogger("keras_elf")

_REVISION = re.compile(r"[\w+@#-][\w.+@#-]*(?:/[\w+@#-][\w.+@#-]*)*")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_DIGEST = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


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

    The hub is asked once what the revision holds, and only missing files are fetched. A full
    commit hash whose files are there needs no connection, and neither does anything in the
    cache with `HF_HUB_OFFLINE=1`. If the hub cannot be reached, the copy in the cache is used
    and a warning says so.

    Each call compares the content of each file with the hash that the hub's listing states
    (sha256, or git's sha1 for small files). That reads the files: about a second per GB.

    The client resumes a broken connection within a call; a file that was not complete when
    the call ended is fetched from its beginning by the next one. Where a hub limits the
    requests in the middle of a download, the client waits as long as the hub says and logs it.

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
        ValueError: if `repo_id` or `revision` cannot be a name on a hub.
    """
    from huggingface_hub import constants, hf_hub_download

    repo_id, revision = checked_names(repo_id, revision)
    patterns = [patterns] if isinstance(patterns, str) or callable(patterns) else list(patterns)
    folder = os.path.join(
        os.path.abspath(constants.HF_HUB_CACHE), "models--" + repo_id.replace("/", "--")
    )
    commit, digests, failure = _listing(repo_id, revision, token, folder)
    names = choose(digests, patterns, repo_id)
    snapshot = os.path.join(folder, "snapshots", commit)
    missing = [name for name in names if not os.path.exists(os.path.join(snapshot, name))]
    if missing and failure is not None:
        raise HubError(
            f"The cache holds {repo_id!r} only in part: {shown(missing)} is missing. {failure}",
            failure.reason,
        )
    if failure is None:
        # Before the files: a download that stops halfway is then known to be incomplete.
        _remember(_record(folder, commit), json.dumps({"digests": digests}))
    for name in missing:
        try:
            hf_hub_download(
                repo_id,
                name,
                revision=commit,
                token=token,
                library_name="keras_elf",
                library_version=__version__,
            )
        except Exception as error:
            raise _explained(error, repo_id, revision, name) from None
    files = {name: _verified(snapshot, name, digests[name], repo_id) for name in names}
    if failure is None and revision != commit:
        # The client notes the commit of a branch only when it downloads by the branch's name,
        # which could have moved since the listing.
        _remember(os.path.join(folder, "refs", *revision.split("/")), commit)
    return Download(snapshot, repo_id, revision, commit, files)


def checked_names(repo_id, revision=None):
    """Return `(repo_id, revision)`, `"main"` for `None`; `ValueError` for what no hub has."""
    from huggingface_hub.utils import validate_repo_id

    if not isinstance(repo_id, str):
        raise ValueError(f"`repo_id` must be a str such as 'owner/name'. Received: {repo_id!r}")
    validate_repo_id(repo_id)
    revision = "main" if revision is None else revision
    # The client makes a path of it and does not look at it.
    if not isinstance(revision, str) or not _REVISION.fullmatch(revision):
        raise ValueError(
            "`revision` must be a branch, a tag or a commit hash, as in 'main'. Received: "
            f"{revision!r}"
        )
    return repo_id, revision


def _listing(repo_id, revision, token, folder):
    """`(commit, digests, failure)`: from the hub, else from the cache with the reason why.

    `digests` has each file's sha256 (64 digits) or git sha1 (40), `None` where unknown.
    """
    from huggingface_hub import HfApi, constants

    commit = revision if _COMMIT.fullmatch(revision) else None
    if commit and (digests := _recall(_record(folder, commit))):
        return commit, digests, None
    try:
        api = HfApi(token=token, library_name="keras_elf", library_version=__version__)
        # Without a timeout of its own the client would wait for ever.
        timeout = constants.HF_HUB_ETAG_TIMEOUT
        info = api.model_info(repo_id, revision=revision, timeout=timeout, files_metadata=True)
        files = {f.rfilename: f.lfs.sha256 if f.lfs else f.blob_id for f in info.siblings or ()}
        if not _COMMIT.fullmatch(info.sha or "") or not all(
            _DIGEST.fullmatch(digest or "") for digest in files.values()
        ):
            raise HubError(
                f"The hub does not say the hashes of the files in {repo_id!r}, so they could not "
                "be checked. Check HF_ENDPOINT: a mirror must serve the hub's own listing."
            )
        return info.sha, files, None
    except Exception as error:
        failure = _explained(error, repo_id, revision)
    if commit is None:
        with contextlib.suppress(OSError):
            with open(os.path.join(folder, "refs", *revision.split("/"))) as file:
                commit = file.read(64).strip()
    digests = None
    if failure.reason in UNREACHABLE and _COMMIT.fullmatch(commit or ""):
        digests = _recall(_record(folder, commit)) or _on_disk(folder, commit)
    if not digests:
        raise failure from None
    if failure.reason != "offline":
        logger.warning("Using the copy of %r in the cache (%.8s): %s", repo_id, commit, failure)
    return commit, digests, failure


def _explained(error, repo_id, revision, filename=None):
    from huggingface_hub import constants

    logger.debug("The client of the hub raised", exc_info=error)
    return explain(error, repo_id, revision, constants.ENDPOINT.rstrip("/"), filename)


def _verified(snapshot, name, digest, repo_id):
    """The sha256 of a file in the cache; one that is not what the hub says is removed."""
    path = os.path.join(snapshot, name)
    with open(path, "rb") as file:
        sha256 = found = hashlib.file_digest(file, "sha256").hexdigest()
        if digest and len(digest) == 40:
            git = hashlib.sha1(b"blob %d\0" % file.seek(0, os.SEEK_END), usedforsecurity=False)
            file.seek(0)
            git.update(file.read())
            found = git.hexdigest()
    if digest in (None, found):
        return sha256
    # A link in the snapshot leads to a blob, which may itself be a link into a shared store.
    for broken in {os.path.realpath(path), os.path.abspath(path)}:
        with contextlib.suppress(OSError):
            os.unlink(broken)
    left = f"Delete {path!r}" if os.path.lexists(path) else "The broken file was deleted"
    kind = "sha256" if found == sha256 else "git sha1"
    raise HubError(
        f"The file {name!r} of {repo_id!r} is damaged: its {kind} is {found}, the hub says "
        f"{digest}. {left}; call again to download it anew.",
        "damaged",
    )


def _record(folder, commit):
    return os.path.join(folder, ".keras_elf", f"{commit}.json")


def _remember(path, text):
    # A cache that cannot be written is no reason to fail where all files are there.
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with replaced(path) as file:
            file.write(text)


def _recall(record):
    try:
        with open(record, encoding="utf-8") as file:
            return dict(json.load(file)["digests"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _on_disk(folder, commit):
    """What another program downloaded: a blob has its digest as name."""
    top, digests = os.path.join(folder, "snapshots", commit), {}
    for directory, _, files in os.walk(top):
        for path in (os.path.join(directory, file) for file in files):
            if os.path.exists(path):
                blob = os.path.basename(os.readlink(path)) if os.path.islink(path) else ""
                name = os.path.relpath(path, top).replace(os.sep, "/")
                digests[name] = blob if _DIGEST.fullmatch(blob) else None
    return digests
