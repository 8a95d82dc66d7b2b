"""Sources from Python objects: lists, generators, anything with records in it."""

import hashlib
import itertools
import json

import numpy as np

from keras_elf.data.sources.source import Source


class IterableSource(Source):
    """Records of an iterable: str, token ids, or dicts of them.

    Args:
        records: iterable. One that is its own iterator can be read once only.
    """

    def __init__(self, records):
        if isinstance(records, (str, bytes, dict)) or not hasattr(records, "__iter__"):
            raise ValueError(
                "`spec` must be a name, a path or an iterable of texts, token ids or dicts. "
                f"Received: {records!r:.80} (of type {type(records).__name__})"
            )
        self.records = records
        self.is_used = False

    @property
    def once(self):
        """Whether there is but one pass."""
        return iter(self.records) is self.records

    def __iter__(self):
        if self.once and self.is_used:
            raise ValueError("`spec` is an iterator that was read already. Pass a list, or anew.")
        self.is_used = True
        for index, record in enumerate(self.records):
            yield f"entry {index}", record

    def peek(self):
        if not self.once:
            return super().peek()
        first = list(itertools.islice(self.records, 1))
        self.records = itertools.chain(first, self.records)
        return ("entry 0", first[0]) if first else None

    def fingerprint(self):
        """Digest of all records, or `None` where reading them would use them up."""
        if self.once:
            return None
        digest = hashlib.blake2b(digest_size=16)
        for _, record in self:
            digest.update(json.dumps(record, default=_plain).encode())
            digest.update(b"\n")
        return digest.hexdigest()


def _plain(value):
    """What JSON does not know, as what it does; anything else is refused when it is read."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return np.asarray(value).tolist() if hasattr(value, "__array__") else repr(type(value))
