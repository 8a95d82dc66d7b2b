"""From the records of a source to a store of tokens, once: later runs find it again."""

import hashlib
import itertools
import json
import os
import warnings

import numpy as np

from keras_elf.data.encode import special_token_ids, to_token_ids
from keras_elf.data.token_store import FORMAT, TokenStore

_CHUNK = 256


def tokenized(source, fields, tokenizer, *, vocabulary_size, add_end, max_examples, cache_dir):
    """The tokens of a source.

    Args:
        source: as `keras_elf.data.sources.open_source` gives it.
        fields: `Fields`.
        tokenizer: a `keras_hub.tokenizers.Tokenizer`.
        vocabulary_size: int. Bound of the ids.
        add_end: bool. Whether an end token is put behind each target that has none.
        max_examples: int or `None`. Stop after so many.
        cache_dir: str or `None`. Where stores are kept.

    Returns:
        `TokenStore`.
    """
    maker = _Maker(fields, tokenizer, vocabulary_size, add_end, max_examples)
    directory = None
    if cache_dir is not None:
        content = source.fingerprint()
        if content is not None:
            key = [FORMAT, content, fields.key(), _tokenizer_key(tokenizer), *maker.key()]
            name = hashlib.blake2b(json.dumps(key).encode(), digest_size=16).hexdigest()
            directory = os.path.join(os.path.expanduser(os.fspath(cache_dir)), f"tokens-{name}")
            store = TokenStore.open(directory)
            if store is not None:
                return store
        else:
            directory = None
            warnings.warn(
                "`spec` can be read only once, so its tokens are not kept in `cache_dir`.",
                UserWarning,
                stacklevel=3,
            )
    dtype = "uint16" if vocabulary_size <= 2**16 else "int32"
    store = TokenStore.build(
        maker.pairs(source), dtype, directory, lambda: maker.skipped, fields.values
    )
    if store.target is None:
        raise ValueError("`spec` holds no text: there are no records, or all are blank.")
    return store


class _Maker:
    """Turns records into pairs of ids with their values; counts the blank ones, left out."""

    def __init__(self, fields, tokenizer, vocabulary_size, add_end, max_examples):
        self.fields, self.tokenizer, self.vocabulary_size = fields, tokenizer, vocabulary_size
        self.add_end, self.max_examples, self.skipped = add_end, max_examples, 0
        self.pad_id, self.end_id = special_token_ids(tokenizer)

    def key(self):
        return [self.vocabulary_size, self.add_end, self.max_examples]

    def pairs(self, source):
        self.skipped = 0
        kept = itertools.islice(self._kept(source), self.max_examples)
        while chunk := list(itertools.islice(kept, _CHUNK)):
            places, conditions, targets, values = zip(*chunk, strict=True)
            targets = self._ids(places, self.fields.target, targets)
            if self.add_end:
                targets = [_ended(ids, self.end_id) for ids in targets]
            if conditions[0] is not None:
                conditions = self._ids(places, self.fields.condition, conditions)
            yield from zip(conditions, targets, values, strict=True)

    def _kept(self, source):
        for place, record in source:
            condition, target = self.fields.pick(place, record)
            if self._is_blank(target) or (condition is not None and self._is_blank(condition)):
                self.skipped += 1
            else:
                yield place, condition, target, self.fields.numbers(place, record)

    def _is_blank(self, value):
        if isinstance(value, str):
            return not value.strip()
        return not (np.asarray(value) != self.pad_id).any()

    def _ids(self, places, name, values):
        if not isinstance(values[0], str):
            return [self._checked(*pair, name) for pair in zip(places, values, strict=True)]
        try:
            return self._tokenize(values)
        except ValueError:
            # The rare way, one by one, to tell which it is.
            for place, value in zip(places, values, strict=True):
                try:
                    self._tokenize([value])
                except ValueError as error:
                    raise ValueError(f"{place}: {error}") from None
            raise

    def _tokenize(self, texts):
        size = self.vocabulary_size
        return to_token_ids("text", list(texts), self.tokenizer, vocabulary_size=size)

    def _checked(self, place, ids, name):
        ids = np.asarray(ids)
        used = np.flatnonzero(ids != self.pad_id)
        ids = ids[: used[-1] + 1]
        bad = np.flatnonzero((ids < 0) | (ids >= self.vocabulary_size))
        if bad.size:
            raise ValueError(
                f"{place}: {name or 'record'!r} must hold ids in [0, {self.vocabulary_size}). "
                f"Received: {ids[bad[0]]} at index {bad[0]}"
            )
        return ids


def _ended(ids, end_id):
    return ids if ids[-1] == end_id else [*ids, end_id]


def _tokenizer_key(tokenizer):
    proto = getattr(tokenizer, "proto", None)
    if isinstance(proto, bytes):
        return hashlib.blake2b(proto, digest_size=16).hexdigest()
    config = tokenizer.get_config() if hasattr(tokenizer, "get_config") else {}
    vocabulary = tokenizer.get_vocabulary() if hasattr(tokenizer, "get_vocabulary") else []
    text = json.dumps([type(tokenizer).__name__, config, list(vocabulary)], default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
