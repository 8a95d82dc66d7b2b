"""Rows out of documents: packed one after the other, or a row for each, with its condition."""

import numpy as np

from keras_elf import checks
from keras_elf.data.rows import PAD_WITH, check_lengths, make_rows


def pack_documents(
    documents, sequence_length, *, end_id, pad_id=0, pad_with="pad", keep_remainder=False
):
    """Pack documents into full rows as they come, in the memory of a few of them.

    Documents follow each other with an end token between, and go on in the next row where one is
    full, as published ELF packs OpenWebText. No token is lost but those of the last row, if it
    does not fill.

    Args:
        documents: iterable of sequences of int. An end token is put behind those that have none.
        sequence_length: int. Number of tokens in a row.
        end_id: int. Id of the end token.
        pad_id: int. Id of the padding token. Defaults to `0`.
        pad_with: `"pad"` or `"end"`. The token that fills up the last row. Defaults to `"pad"`.
        keep_remainder: bool. Whether the last row is kept, and filled up. Defaults to `False`.

    Yields:
        dicts of arrays of shape `(sequence_length,)`: `token_ids` (int32), `is_cond` (bool, all
        `False`), `is_valid` (bool) and `segments` (int32), the number of the document within the
        row. Padding has the number after the last.

    Example:

    ```python
    rows = list(pack_documents([[5, 6, 7], [8, 9]], 3, end_id=1))
    rows[1]["token_ids"], rows[1]["segments"]  # [1, 8, 9], [0, 1, 1]
    ```
    """
    sequence_length, _ = check_lengths(sequence_length)
    fill = end_id if checks.choice("pad_with", pad_with, PAD_WITH) == "end" else pad_id
    ids, segments, number = np.zeros(0, "int32"), np.zeros(0, "int32"), 0
    for document in documents:
        document = np.asarray(document, dtype="int32")
        if not document.size or document[-1] != end_id:
            document = np.append(document, np.int32(end_id))
        ids = np.concatenate([ids, document])
        segments = np.concatenate([segments, np.full(len(document), number, "int32")])
        number += 1
        full = len(ids) // sequence_length * sequence_length
        for start in range(0, full, sequence_length):
            stop = start + sequence_length
            yield _packed_row(ids[start:stop], segments[start:stop], sequence_length, fill)
        ids, segments = ids[full:], segments[full:]
    if keep_remainder and len(ids):
        yield _packed_row(ids, segments, sequence_length, fill)


def _packed_row(ids, segments, length, fill):
    segments, missing = segments - segments[0], length - len(ids)
    return {
        "token_ids": np.pad(ids, (0, missing), constant_values=fill),
        "is_cond": np.zeros(length, bool),
        "is_valid": np.arange(length) < len(ids),
        "segments": np.pad(segments, (0, missing), constant_values=segments[-1] + 1),
    }


class PackedRows:
    """The rows that `pack_documents` makes, each found without those before it.

    Args:
        documents: `Column`, every document with its end token.
        sequence_length: int.
        fill_id: int. The token that fills up the last row.
        keep_remainder: bool.
        segments: bool. Whether batches tell the documents apart.
    """

    def __init__(self, documents, sequence_length, fill_id, keep_remainder, segments):
        self.documents, self.length, self.fill_id = documents, sequence_length, fill_id
        self.with_segments = segments
        full, rest = divmod(len(documents.tokens), sequence_length)
        self.num_rows = full + (1 if rest and keep_remainder else 0)

    def __len__(self):
        return self.num_rows

    def batch(self, rows):
        """The rows of some numbers, as a dict of arrays `(rows, sequence_length)`."""
        tokens = self.documents.tokens
        places = rows[:, None] * self.length + np.arange(self.length)
        is_valid = places < len(tokens)
        places = np.minimum(places, len(tokens) - 1)
        out = {
            "token_ids": np.where(is_valid, tokens[places], self.fill_id).astype("int32"),
            "is_cond": np.zeros(places.shape, bool),
            "is_valid": is_valid,
        }
        if self.with_segments:
            numbers = np.searchsorted(self.documents.offsets, places, side="right")
            numbers = numbers - numbers[:, :1] + ~is_valid
            out["segments"] = numbers.astype("int32")
        return out


class PairRows:
    """A row for each document: its condition, if there are conditions, and the text behind it.

    Args:
        target: `Column`.
        condition: `Column` or `None`.
        values: dict from names to arrays with a number for each row.
        **layout: arguments of `make_rows`.
    """

    def __init__(self, target, condition, values, **layout):
        self.target, self.condition, self.layout = target, condition, layout
        self.values = values

    def __len__(self):
        return len(self.target)

    def number_cut(self):
        """How many rows lose tokens of their condition or target."""
        length, limit = self.layout["sequence_length"], self.layout["condition_length"]
        start, cut = 0, False
        if self.condition is not None:
            lengths = self.condition.lengths()
            start = np.minimum(lengths, length - 1 if limit is None else limit)
            cut = lengths > start
        return int(np.sum(cut | (self.target.lengths() > length - start)))

    def batch(self, rows):
        """The rows of some numbers, as a dict of arrays `(rows, sequence_length)`."""
        conditions = None
        if self.condition is not None:
            conditions = [self.condition[row] for row in rows]
        batch, _ = make_rows([self.target[row] for row in rows], conditions, **self.layout)
        return {**batch, **{name: value[rows] for name, value in self.values.items()}}
