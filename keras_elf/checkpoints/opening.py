"""Opens any of the released checkpoint formats, told apart by their contents."""

import os
import pathlib
import re

from keras_elf.checkpoints.flax_msgpack import open_flax_msgpack
from keras_elf.checkpoints.orbax_directory import is_orbax, open_orbax
from keras_elf.checkpoints.reading import contained, damaged, file_size, read_bytes, shown
from keras_elf.checkpoints.torch_file import open_torch_file

_CHECKPOINT = re.compile(r"checkpoint_([0-9]{1,18})")
# What people have under a similar name, and what to do with it.
_OTHERS = [
    (b"version https://git-lfs", "it is a Git LFS pointer: fetch the file with `git lfs pull`"),
    (b"\x89HDF", "it is a Keras weights file: load it with `load_weights` or `from_preset`"),
    (b"<", "it is a web page, as a broken download leaves: download the file itself"),
]


def open_checkpoint(path):
    """Open a checkpoint of the public ELF code without reading its arrays.

    The format is told from the content, never from the name. Nothing in the file is executed, and
    the framework that wrote it is not needed. Torch and msgpack files made to do harm are refused
    within bounded memory; an orbax directory is read by TensorStore, which believes the sizes
    that its index gives, so open those only of people you trust.

    Args:
        path: str or path. A file of `torch.save`, a msgpack file of flax, a directory of orbax, or
            a directory with `checkpoint_<step>` entries, of which the one with the highest step
            is taken.

    Returns:
        A `ReleasedCheckpoint`: names, shapes and dtypes of the raw and, where stored, the EMA
        weights. `read()` of an array reads that array only and returns one of its own.

    Raises:
        FileNotFoundError: if there is nothing at `path`.
        ImportError: if TensorStore or msgpack is missing; the extra that has it is named.
        ValueError: if it is not such a checkpoint, or damaged.
    """
    path = pathlib.Path(path).expanduser()
    if not path.exists():
        raise FileNotFoundError(f"There is no checkpoint at {str(path)!r}.")
    try:
        if path.is_dir():
            return _open_directory(path)
        return _open_file(path)
    except OSError as error:
        # Permissions, loops of links, names too long for the file system.
        raise damaged(path, f"the file system says {error.strerror!r}") from error


def _open_directory(path):
    if is_orbax(path):
        return open_orbax(path)
    steps = {}
    for name in os.listdir(path):
        match = _CHECKPOINT.fullmatch(name)
        if match:
            steps[int(match[1])] = name
    if not steps:
        raise damaged(
            path,
            "the directory holds no `checkpoint_<step>` and is not an orbax checkpoint itself",
        )
    newest = path / steps[max(steps)]
    if not contained(path, newest.name).exists():
        raise damaged(path, f"{shown(newest.name)} is a link to nothing")
    if not newest.is_dir():
        return _open_file(newest)
    if is_orbax(newest):
        return open_orbax(newest)
    raise damaged(newest, "the directory is not an orbax checkpoint")


def _open_file(path):
    size = file_size(path)
    head = read_bytes(path, 0, min(size, 64))
    if not head:
        raise damaged(path, "the file is empty")
    if head.startswith(b"PK"):
        return open_torch_file(path)
    if head[0] == 0x80 and len(head) > 1 and head[1] in range(1, 6):
        raise damaged(
            path,
            "it is a bare pickle, as torch.save wrote before version 1.6, and pickles are not "
            "executed here (saving it again with a current torch.save gives a readable file)",
        )
    for magic, advice in _OTHERS:
        if head.startswith(magic):
            raise damaged(path, advice)
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 2**32:
        raise damaged(path, "it looks like a safetensors file, which the public code never writes")
    # A map: what flax writes.
    if head[0] in range(0x80, 0x90) or head[0] in (0xDE, 0xDF):
        return open_flax_msgpack(path)
    raise damaged(path, f"a file that begins with {shown(head[:8])} is of none of its formats")
