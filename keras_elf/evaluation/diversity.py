"""Diversity and repetition from n-grams, without any model.

N-grams are of lower-cased words and punctuation marks where texts are str, else of token ids.
"""

import collections

from keras_elf import checks
from keras_elf.evaluation.texts import units


def distinct_n(texts, n=2):
    """Distinct-n: distinct n-grams divided by all n-grams, over all texts together.

    It falls as a corpus grows, so compare corpora of the same size.

    Args:
        texts: list of str, or list of sequences of token ids.
        n: int. Words in an n-gram. Defaults to `2`.

    Returns:
        float in (0, 1]; higher is more diverse.

    Raises:
        ValueError: if no text has `n` words, or for other input.

    Source: Li et al., arXiv 1510.03055 (distinct-1 and distinct-2).
    """
    n = checks.integer("n", n, minimum=1)
    grams = [gram for row in units(texts) for gram in ngrams(row, n)]
    if not grams:
        raise ValueError(f"`texts` must hold a text of at least n={n} words. None has as many")
    return len(set(grams)) / len(grams)


def repeated_ngrams(texts, n=4):
    """Share of a text's n-grams that stood in it before, averaged over texts.

    A text with fewer than `n` words repeats none.

    Args:
        texts: list of str, or list of sequences of token ids.
        n: int. Words in an n-gram. Defaults to `4`.

    Returns:
        float in [0, 1); lower is less repetitive.

    Raises:
        ValueError: for no texts or other input.

    Source: Welleck et al., arXiv 1908.04319 (seq-rep-n).
    """
    n = checks.integer("n", n, minimum=1)
    rows = units(texts)
    return sum(repetition(row, n) for row in rows) / len(rows)


def looping_texts(texts, n=5, times=3):
    """Share of the texts in which some n-gram occurs `times` times or more.

    Long natural texts have a few such n-grams too; compare texts of one length.

    Args:
        texts: list of str, or list of sequences of token ids.
        n: int. Words in an n-gram. Defaults to `5`.
        times: int. Defaults to `3`.

    Returns:
        float in [0, 1].

    Raises:
        ValueError: for no texts or other input.
    """
    n = checks.integer("n", n, minimum=1)
    times = checks.integer("times", times, minimum=2)
    rows = units(texts)
    counts = [collections.Counter(ngrams(row, n)) for row in rows]
    return sum(max(c.values(), default=0) >= times for c in counts) / len(rows)


def ngrams(row, n):
    """All n-grams of a sequence, in order, as tuples."""
    return list(zip(*(row[i:] for i in range(n)), strict=False))


def repetition(row, n):
    """Share of a sequence's n-grams that stood in it before; 0 where it has none."""
    grams = ngrams(row, n)
    return 1 - len(set(grams)) / len(grams) if grams else 0.0
