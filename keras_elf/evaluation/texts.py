"""What all figures ask of the texts they are given, and what a word is."""

import functools
import re
import unicodedata

import numpy as np

from keras_elf import checks

# Scripts that put no blanks between words: kana, Han, Thai, Lao, Tibetan, Burmese, Khmer.
_UNSPACED = (
    (0x0E00, 0x0FFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x31F0, 0x31FF),
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0xFF66, 0xFF9F), (0x20000, 0x323AF),
)  # fmt: skip
_KANA = ((0x3040, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9F))
# Letters of one word, a letter that is a word, a mark: see `_Kinds`.
_WORD = re.compile("w+|u|p")


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
        if not checks.is_unicode(text):
            raise ValueError(
                f"`{name}` must be valid Unicode. Received: {text!r:.80} at index {index}, which "
                "has lone surrogates"
            )
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
    """The lower-cased words and punctuation marks of a text, for which no tokenizer is needed.

    Accents, vowel signs and joiners belong to the word they stand in. In scripts that are
    written without blanks, such as Chinese and Thai, each character counts as a word.
    """
    text = text.lower()
    return [text[m.start() : m.end()] for m in _WORD.finditer(text.translate(_KINDS))]


class _Kinds(dict):
    """From a character's number to one letter: "w" of a word, "u" a word by itself, "p" a mark."""

    def __missing__(self, number):
        category = unicodedata.category(chr(number))
        if _among(number, _UNSPACED) and category[0] in "LNM":
            kind = "u"
        elif category[0] in "LNM" or category in ("Pc", "Cf"):
            kind = "w"
        else:
            kind = " " if chr(number).isspace() or category[0] == "C" else "p"
        self[number] = kind
        return kind


_KINDS = _Kinds()


def _among(number, ranges):
    return any(first <= number <= last for first, last in ranges)


@functools.lru_cache(maxsize=4096)
def _script(letter):
    number = ord(letter)
    if _among(number, _KANA):
        return "kana"
    if _among(number, _UNSPACED):
        return "Han" if "CJK" in unicodedata.name(letter, "") else "unspaced"
    return "Latin" if letter.isascii() else "other"


def script_of(texts):
    """How most letters of `texts` are written: `"Latin"`, `"Han"`, `"unspaced"` or `"other"`.

    `"unspaced"` are scripts without blanks between words other than plain Chinese, Japanese among
    them; `"Latin"` is a to z.
    """
    counts = dict.fromkeys(("Latin", "Han", "kana", "unspaced", "other"), 0)
    for text in texts:
        for letter in text:
            if letter.isalpha():
                counts[_script(letter)] += 1
    # A third to a half of Japanese letters are kana; Chinese has some in names.
    kana = counts.pop("kana")
    counts["unspaced"] += kana
    if kana > 0.05 * counts["Han"]:
        counts["unspaced"] += counts["Han"]
        counts["Han"] = 0
    return max(counts, key=counts.get)


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
