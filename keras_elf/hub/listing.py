"""Which files of a repository are wanted, and which names are safe to write."""

import fnmatch
import re

from keras_elf.hub.errors import HubError

_STEP = re.compile(r"((?:.*/)?checkpoint_(\d+))(?:/.*)?")
_SHOWN = 12


def choose(names, patterns, repo_id):
    """Names that `patterns` ask for, sorted.

    Args:
        names: iterable of str. The files of the repository.
        patterns: list of str and callables. A str with a wildcard (`*`, `?`, `[`) takes what
            matches, which may be nothing; a str without one names a file that must be there;
            a callable gets the list of names and returns those wanted.
        repo_id: str. For messages.
    """
    names = sorted(names)
    found = set()
    for pattern in patterns:
        if callable(pattern):
            found.update(pattern(names))
        elif re.search(r"[*?\[]", pattern):
            found.update(fnmatch.filter(names, pattern))
        elif pattern in names:
            found.add(pattern)
        else:
            raise HubError(f"{repo_id!r} has no file {pattern!r}. It holds: {shown(names)}", "file")
    if not found:
        wanted = [p for p in patterns if isinstance(p, str)] or "what was asked for"
        raise HubError(f"{repo_id!r} has no file like {wanted}. It holds: {shown(names)}", "file")
    for name in found:
        # Only the newest clients refuse such names, and not all of them.
        parts = name.split("/")
        if re.search(r'[\\:\x00-\x1f<>"|]', name) or {"", ".", ".."} & set(parts):
            raise HubError(
                f"{repo_id!r} holds a file whose name leads out of its directory: {name!r}. It "
                "is not downloaded; tell the owners of the repository."
            )
    return sorted(found)


def newest_checkpoint(names):
    """Return the names of the one `checkpoint_<step>` with the highest step.

    A released checkpoint is a file `checkpoint_<step>` or a directory of that name; only
    the newest one is worth a download.

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
