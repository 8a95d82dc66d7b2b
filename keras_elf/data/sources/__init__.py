"""Where text comes from: one small class for each kind of source, all with the same face.

A source is iterable, as often as one likes unless it was made from an iterator, and yields
`(place, record)`: a record as the source holds it (str, ids or a dict of fields), and the place to
name in an error message. `fingerprint()` identifies what it holds, for a cache.
"""

from keras_elf.data.sources.opening import open_source

__all__ = ["open_source"]
