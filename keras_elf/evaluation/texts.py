"""What all figures ask of the texts they are given, and what a word is."""

import re

import numpy as np

# A word or a single mark, as the n-gram figures count them: no tokenizer takes part.
_WORD = re.compile(r"\w+|[^\w\s]")


def check_texts(name, texts, allow_empty=False):
    """The texts as a list of str.

    Args:
        name: str. What error messages call them.
        texts: iterable of str.
        allow_empty: bool. Whether single texts may be empty. Defaults to `False`.

    Raises:
        ValueError: for a bare str, an empty list, other types, lone surrogates and, unless they
            are allowed, empty texts.
    """
    if isinstance(texts, (str, bytes, dict)) or not hasattr(texts, "__iter__"):
        raise ValueError(
            f"`{name}` must be a list of str, one a text. Received: {texts!r:.100}"
            + (". Put it in a list" if isinstance(texts, str) else "")
        )
    texts = list(texts)
    if not texts:
        raise ValueError(f"`{name}` must hold at least one text. Received: an empty list")
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(
                f"`{name}` must be a list of str. Received: {text!r:.80} of type "
                f"{type(text).__name__} at index {index}"
            )
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError(
                f"`{name}` must be valid Unicode. Received: {text!r:.80} at index {index}, which "
                "has lone surrogates"
            ) from None
        if not allow_empty and not text.strip():
            raise ValueError(
                f"`{name}` must not hold empty texts. Received: {text!r:.80} at index {index}. "
                "Leave such texts out, and say how many there were"
            )
    return texts


def check_pairs(texts, references):
    """Texts (which may be empty) and as many references (which may not) as two lists."""
    texts = check_texts("texts", texts, allow_empty=True)
    references = check_texts("references", references)
    if len(texts) != len(references):
        raise ValueError(
            "`references` must hold one text for each of `texts`. Received: "
            f"{len(references)} references and {len(texts)} texts"
        )
    return texts, references


def words(text):
    """The lower-cased words and punctuation marks of a text."""
    return _WORD.findall(text.lower())


def units(texts):
    """What n-grams are made of: the words of each text, or the token ids that were given.

    Args:
        texts: list of str, or list of sequences of token ids.
    """
    if isinstance(texts, (str, bytes, dict)) or not hasattr(texts, "__iter__"):
        return [words(text) for text in check_texts("texts", texts)]
    texts = list(texts)
    if not texts or any(isinstance(text, (str, bytes)) for text in texts):
        return [words(text) for text in check_texts("texts", texts, allow_empty=True)]
    return check_ids("texts", texts)


def check_ids(name, rows):
    """Sequences of token ids as a list of lists of int."""
    checked = []
    for index, row in enumerate(rows):
        array = np.asarray(row) if hasattr(row, "__len__") and not isinstance(row, dict) else None
        if array is None or array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise ValueError(
                f"`{name}` must be a list of str, or of flat sequences of token ids. Received: "
                f"{row!r:.80} at index {index}"
            )
        checked.append([int(i) for i in array])
    return checked
