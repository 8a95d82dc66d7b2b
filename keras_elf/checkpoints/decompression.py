"""Decompression that never gives more bytes than were promised."""

import zlib

from keras_elf.checkpoints.reading import damaged


def decompress(path, method, data, limit, exact=False):
    """Decompress `data` to at most `limit` bytes.

    Args:
        path: the file it is from, for messages.
        method: `None`, `"zstd"`, `"gzip"` or `"zlib"`.
        data: bytes.
        limit: int. The most bytes that may come out.
        exact: bool. Whether it must be `limit` bytes. Defaults to `False`.

    Raises:
        ImportError: if zstd is needed and not installed.
        ValueError: if the data is broken or holds more.
    """
    if method is None:
        result, complete = data, True
    else:
        decoder, broken = _decoder(method)
        try:
            result = decoder.decompress(data, limit + 1)
        except broken as error:
            raise damaged(path, f"its {method} data is broken ({error})") from None
        complete = decoder.eof and not decoder.unused_data
    if not complete or len(result) > limit or (exact and len(result) != limit):
        raise damaged(path, f"its data does not unpack to {limit:,} bytes")
    return result


def _decoder(method):
    """A decoder and the exception it raises for broken data."""
    if method == "zstd":
        zstd = _zstd()
        return zstd.ZstdDecompressor(), zstd.ZstdError
    return zlib.decompressobj(31 if method == "gzip" else 15), zlib.error


def _zstd():
    try:
        from compression import zstd
    except ImportError:
        try:
            from backports import zstd
        except ImportError:
            raise ImportError(
                "Reading an orbax checkpoint needs zstd, which Python has from 3.14 on. Before "
                'that: `pip install "keras-elf[orbax]"`. The msgpack and torch files of the same '
                "weights need nothing."
            ) from None
    return zstd
