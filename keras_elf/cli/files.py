"""Small text files, written whole or not at all."""

import os


def write_text(path, content):
    """Write `content` and a line end beside `path`, then move it there."""
    beside = f"{os.fspath(path)}.part"
    with open(beside, "w", encoding="utf-8") as stream:
        stream.write(content + "\n")
    os.replace(beside, path)
