"""Texts with holes in them: `The <mask:8> of the LORD` as a row of token ids, and back."""

import re

import numpy as np

from keras_elf.data.decode import tokens_to_text
from keras_elf.data.encode import special_token_ids, to_token_ids

_HOLE = re.compile(r"<mask(?::(\d+))?>")
_DIGITS = 12
_LOOKS_LIKE_ONE = re.compile(r"<\s*mask[^>]*>?", re.IGNORECASE)
# Texts to stand before a fragment while it is tokenised.
_BEFORE = (".", ",", "a", "0")


def split_holes(text):
    """The parts of a text in order: str for what is given, int for a hole of so many tokens.

    Args:
        text: str. `<mask:8>` is a hole of eight tokens, `<mask>` of one.

    Returns:
        list of str and int.

    Raises:
        ValueError: if there is no hole, one of no tokens, or something that only looks like a
            hole.
    """
    if not isinstance(text, str):
        raise ValueError(f"Each text must be a str with holes. Received: {text!r:.80}")
    parts, start = [], 0
    for match in _HOLE.finditer(text):
        # More digits than any row has tokens are not worth reading, and Python refuses some.
        parts += [text[start : match.start()], int((match[1] or "1")[:_DIGITS])]
        start = match.end()
    parts.append(text[start:])
    given = [part for part in parts if isinstance(part, str)]
    strange = [found for part in given for found in _LOOKS_LIKE_ONE.findall(part)]
    if strange or 0 in parts or len(parts) == 1:
        wrong = strange[0] if strange else "<mask:0>" if 0 in parts else text[:80]
        raise ValueError(
            "A hole must be written '<mask:8>' (eight tokens) or '<mask>' (one), and each text "
            f"must have one. Received: {wrong!r}"
        )
    return [part for part in parts if part != ""]


def hole_rows(texts, tokenizer, sequence_length, vocabulary_size=None):
    """Rows of token ids in which everything but the holes is a condition.

    What stands behind a hole is tokenised as the middle of a text. Blanks in front of a hole
    belong to the hole's first token. The end token and the padding behind a text are given too:
    a text keeps its length.

    Args:
        texts: list of str, see `split_holes`.
        tokenizer: a `keras_hub.tokenizers.Tokenizer`.
        sequence_length: int. Number of tokens in a row.
        vocabulary_size: int. As in `encode_texts`.

    Returns:
        A tuple of a dict as from `make_rows` (`token_ids` with padding in the holes, `is_cond`
        where something is given, `is_valid` everywhere but in the padding) and an int array
        `(texts,)`, the number of tokens of each text.

    Raises:
        ValueError: naming the text, if it has no hole or does not fit into a row.
    """
    pad_id, end_id = special_token_ids(tokenizer)
    shape = len(texts), sequence_length
    token_ids = np.full(shape, pad_id, "int32")
    is_cond, is_valid = np.ones(shape, "bool"), np.zeros(shape, "bool")
    lengths = np.zeros(len(texts), "int32")

    def encode(text):
        return to_token_ids("inputs", [text], tokenizer, vocabulary_size=vocabulary_size)[0]

    for row, text in enumerate(texts):
        place, parts = 0, split_holes(text)
        for number, part in enumerate(parts):
            given = isinstance(part, str)
            if given:
                last = number == len(parts) - 1
                ids = _fragment(part if last else part.rstrip(" "), number > 0, encode)
            else:
                ids = [pad_id] * min(part, sequence_length + 1)
            end = place + len(ids)
            if end > sequence_length:
                raise ValueError(
                    f"Text {row} and its holes take more than the {sequence_length} tokens of a "
                    f"row. Received: {text[:80]!r}"
                )
            token_ids[row, place:end] = ids
            is_cond[row, place:end] = given
            place = end
        lengths[row] = place
        if place < sequence_length:
            token_ids[row, place] = end_id
            place += 1
        is_valid[row, :place] = True
    return {"token_ids": token_ids, "is_cond": is_cond, "is_valid": is_valid}, lengths


def filled_text(text, token_ids, is_cond, tokenizer):
    """`text` as it was given, with its holes replaced by what a row says there.

    Args:
        text: str, see `split_holes`.
        token_ids: int array `(length,)`. The row of `hole_rows` with its holes filled.
        is_cond: bool array `(length,)` of `hole_rows`.
        tokenizer: the tokenizer of `hole_rows`.
    """
    specials, found, place = special_token_ids(tokenizer), "", 0

    def decode(stop):
        return tokens_to_text(
            [i for i in token_ids[:stop].tolist() if i not in specials], tokenizer
        )

    holes = np.flatnonzero(~is_cond)
    for part in split_holes(text):
        if isinstance(part, str):
            found += part
            continue
        first, stop = holes[place], holes[place + part - 1] + 1
        # Read as the middle of a text: its first token may or may not begin a word.
        words = decode(stop).removeprefix(decode(first))
        found += words.lstrip(" ") if not found or found[-1].isspace() else words
        place += part
    return found


def _fragment(text, in_the_middle, encode):
    """Token ids of a part of a text: a tokenizer may put a blank in front of a whole text."""
    if not text.strip():
        return []
    for before in _BEFORE if in_the_middle else ():
        known, ids = list(encode(before)), list(encode(before + text))
        if ids[: len(known)] == known:
            return ids[len(known) :]
    return encode(text)
