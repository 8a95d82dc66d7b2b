"""Names of repositories and revisions that a hub could have, so that no path is made of others."""

import re

_NAME = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?"
_REPO = re.compile(rf"(?:{_NAME}/)?{_NAME}")
_REVISION = re.compile(r"[\w+@#-][\w.+@#-]*(?:/[\w+@#-][\w.+@#-]*)*")


def checked_repo_id(repo_id):
    """Return `repo_id`; raise `ValueError` if it is not of the form `owner/name`."""
    ok = isinstance(repo_id, str) and _REPO.fullmatch(repo_id)
    if not ok or "--" in repo_id or ".." in repo_id:
        raise ValueError(
            "`repo_id` must be a repository of the hub, as in 'owner/name': letters, digits, '.', "
            f"'_' and '-'. Received: {repo_id!r}"
        )
    return repo_id


def checked_revision(revision):
    """Return `revision`, `"main"` for `None`; raise `ValueError` if git knows no such name."""
    revision = "main" if revision is None else revision
    if not isinstance(revision, str) or not _REVISION.fullmatch(revision):
        raise ValueError(
            "`revision` must be a branch, a tag or a commit hash, as in 'main'. Received: "
            f"{revision!r}"
        )
    return revision
