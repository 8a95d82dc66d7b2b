"""Texts with holes in them: `The <mask:8> of the LORD` as a row of token ids."""

import re

import numpy as np

from keras_elf.data.encode import special_token_ids, to_token_ids

_HOLE = re.compile(r"<mask(?::(\d+))?>")
_DIGITS = 12
_LOOKS_LIKE_ONE = re.compile(r"<\s*mask[^>]*>?", re.IGNORECASE)


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
    return [part for part in parts if isinstance(part, int) or part.strip()]


def hole_rows(texts, tokenizer, sequence_length, vocabulary_size=None):
    """Rows of token ids in which everything but the holes is a condition.

    The end token and the padding behind a text are given too: a text keeps its length.

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
    for row, text in enumerate(texts):
        place = 0
        for part in split_holes(text):
            given = isinstance(part, str)
            ids = (
                to_token_ids("inputs", [part], tokenizer, vocabulary_size=vocabulary_size)[0]
                if given
                else [pad_id] * min(part, sequence_length + 1)
            )
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
