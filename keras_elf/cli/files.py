"""Text in and out: standard input, and small files that are written whole or not at all."""

import os
import sys

from keras_elf.atomic_file import replaced


def standard_input():
    """All of it as str; raises `ValueError` where it is closed or not UTF-8."""
    if sys.stdin is None:
        raise ValueError("standard input is closed: there is nothing to read")
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"standard input is not UTF-8: {error}") from None


def check_file(name, path):
    """Raise `ValueError` unless a file can be written at `path`: before the work, not after it.

    Args:
        name: str. What the user calls it, such as `"--output"`.
        path: str.
    """
    if _is_device(path):
        return
    place = os.path.realpath(path)
    folder = os.path.dirname(place)
    problem = None
    if not path:
        problem = "it is empty"
    elif os.path.isdir(place):
        problem = "it is a directory"
    elif os.path.islink(place):
        problem = "it is a link that leads nowhere"
    elif not os.path.isdir(folder):
        problem = f"there is no directory {folder!r}"
    elif not os.access(folder, os.W_OK):
        problem = f"the directory {folder!r} cannot be written"
    if problem:
        raise ValueError(
            f"{name} must name a file that can be written. Received: {path!r}, {problem}"
        )


def write_text(path, content):
    """Write `content` and a line end beside `path`, then move it there.

    A link stays a link, and a device or pipe is written to.
    """
    if _is_device(path):
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(content + "\n")
        return
    with replaced(path) as file:
        file.write(content + "\n")


def _is_device(path):
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
