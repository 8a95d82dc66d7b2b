"""Files that are written whole or not at all."""

import contextlib
import os
import pathlib


@contextlib.contextmanager
def replaced(path, mode="w"):
    """A file to write that takes the place of `path` once the block has ended well.

    It is written beside `path`, on the disk before it is moved, and gone if the block fails. A
    link stays a link. Text is UTF-8, with line ends as they are given.

    Args:
        path: str or path, in a directory that exists.
        mode: `"w"` or `"wb"`.
    """
    path = pathlib.Path(os.path.realpath(path))
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    try:
        with open(beside, mode, **text) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        _sync_directory(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def _sync_directory(path):
    # Without it the new name may be lost with the power. Windows cannot, and need not.
    if os.name == "posix":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
