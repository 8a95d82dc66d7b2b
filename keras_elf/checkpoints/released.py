"""What every reader of a released checkpoint gives: named arrays, read when asked for."""

import dataclasses
import pathlib
from collections.abc import Callable

import numpy as np


@dataclasses.dataclass(frozen=True)
class ArrayReference:
    """An array in a file. Its shape and dtype are known, its values not yet read.

    Attributes:
        shape: tuple of int.
        dtype: `numpy.dtype` (bfloat16 is that of `ml_dtypes`).
        read: callable without arguments that returns the NumPy array.
    """

    shape: tuple
    dtype: np.dtype
    read: Callable[[], np.ndarray] = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class ReleasedCheckpoint:
    """A checkpoint of the public ELF code, opened but not read.

    Attributes:
        path: the file or directory that was opened.
        format: `"torch"`, `"msgpack"` or `"orbax"`.
        step: int or `None`. The training step it was saved at.
        weights: dict of `"raw"` and, where the file has them, `"ema"`; each a dict from
            released name (`blocks.0.attn.qkv.weight` in torch files,
            `blocks_0/attn/qkv/kernel` in flax files) to `ArrayReference`.
    """

    path: pathlib.Path
    format: str
    step: int | None
    weights: dict
