"""The corpus in the box: the verses of the King James Bible."""

import importlib.resources
import lzma
import re

FEWEST_WORDS, MOST_WORDS = 5, 21
# One verse of so many is held out.
HELD_OUT = 25
_WORD = r"\w+(?:'\w+)*"


def king_james_verses():
    """The verses of the King James Bible, in order, without book or verse numbers.

    31,103 verses, some 790,000 words of public-domain text (`data/corpora/NOTICE` has the details
    for the United Kingdom), read from compressed package data. It is enough for a demonstration
    or a test on real text without a network, and far too little for a language model of use.

    Returns:
        A new list of str, one a verse.

    Example:

    ```python
    verses = keras_elf.data.king_james_verses()
    verses[0]  # "In the beginning God created the heaven and the earth."
    ```
    """
    file = importlib.resources.files("keras_elf.data") / "corpora" / "kjv_verses.txt.xz"
    return lzma.decompress(file.read_bytes()).decode("utf-8").splitlines()


def king_james_clauses(tokenizer=None, held_out=False):
    """Clauses of the verses, of 5 to 21 words: each reads as a text of its own.

    A verse is cut behind full stops, colons, semicolons, question and exclamation marks; what is
    still too long is cut at commas. The first letter becomes a capital; nothing else is changed.

    Args:
        tokenizer: a `keras_hub.tokenizers.Tokenizer` of whole words, such as that of
            `elf_nano_kjv`. Clauses with a word that it would have to spell are left out.
            Defaults to `None`: all clauses.
        held_out: bool. Whether to return the clauses of every 25th verse, which are in none of
            the others, in place of the others. Defaults to `False`.

    Returns:
        A new list of str.

    Example:

    ```python
    elf = keras_elf.ELFGenerator.from_preset("elf_nano_kjv")
    clauses = keras_elf.data.king_james_clauses(elf.preprocessor.tokenizer)
    ```
    """
    kept, apart = [], []
    for number, verse in enumerate(king_james_verses()):
        for sentence in re.split(r"(?<=[.;:?!])\s+", " ".join(verse.split())):
            for clause in _cut(sentence):
                if FEWEST_WORDS <= _words(clause) <= MOST_WORDS:
                    clause = clause[0].upper() + clause[1:]
                    (apart if number % HELD_OUT == 0 else kept).append(clause)
    unseen = set(apart)
    found = apart if held_out else [clause for clause in kept if clause not in unseen]
    return found if tokenizer is None else [c for c in found if _is_known(c, tokenizer)]


def _cut(sentence):
    """Parts of at most 21 words, as long as commas allow."""
    parts, current = [], ""
    for part in re.split(r"(?<=,)\s+", sentence):
        if current and _words(current) + _words(part) > MOST_WORDS:
            parts.append(current)
            current = ""
        current = f"{current} {part}".strip()
    return [*parts, current]


def _words(text):
    return len(re.findall(_WORD, text))


def _is_known(text, tokenizer):
    """Whether every word has a piece: others are spelled, in more pieces than words and marks."""
    return len(tokenizer.tokenize(text)) == len(re.findall(rf"{_WORD}|[^\w\s]", text))
