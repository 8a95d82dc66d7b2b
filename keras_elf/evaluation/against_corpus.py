"""Generated texts beside the corpus they were to be like: collapse that no text shows alone."""

import collections

from keras_elf.evaluation.diversity import ngrams
from keras_elf.evaluation.texts import check_texts, words

NGRAM = 4
# Texts open alike by chance where there are few of them; the flag asks for this many.
FEWEST_TEXTS = 20
MAX_OPENINGS, MAX_COPIED = 0.2, 0.5


def corpus_figures(texts, corpus):
    """Compare texts with a corpus, such as the training set or held-out text.

    Args:
        texts: list of str, which may be empty. What the model wrote.
        corpus: list of str.

    Returns:
        dict of floats in [0, 1]:
        - `openings_distance`: total variation between the first words of the texts and those of
          the corpus. 0 where texts open as the corpus does, 1 where they never do.
        - `copied_texts`: share of the texts that stand in the corpus, blanks and capitals apart.
        - `new_4grams`: share of a text's 4-grams that the corpus lacks, averaged over the texts
          that have any; missing where none has.

    Raises:
        ValueError: for no texts or other types.
    """
    texts = check_texts("texts", texts, allow_empty=True)
    corpus = check_texts("corpus", corpus)
    rows, known = [words(t) for t in texts], [words(t) for t in corpus]
    whole = {tuple(row) for row in known}
    grams = {gram for row in known for gram in ngrams(row, NGRAM)}
    ours, theirs = _openings(rows), _openings(known)
    distance = sum(abs(ours[word] - theirs[word]) for word in {*ours, *theirs}) / 2
    figures = {
        "openings_distance": distance,
        "copied_texts": sum(tuple(row) in whole for row in rows if row) / len(rows),
    }
    shares = [
        sum(gram not in grams for gram in found) / len(found)
        for found in (ngrams(row, NGRAM) for row in rows)
        if found
    ]
    if shares:
        figures["new_4grams"] = sum(shares) / len(shares)
    return figures


def corpus_flags(texts, corpus, figures):
    """What is suspicious about `corpus_figures`, one sentence each: tuple of str."""
    flags = []
    ours, theirs = (_openings([words(t) for t in some]) for some in (texts, corpus))
    if ours and len(texts) >= FEWEST_TEXTS:
        word = max(ours, key=lambda w: ours[w] - theirs[w])
        if ours[word] - theirs[word] > MAX_OPENINGS:
            flags.append(
                f"Openings: {ours[word]:.0%} of the texts begin with {word!r}, and "
                f"{theirs[word]:.0%} of the corpus."
            )
    if figures["copied_texts"] > MAX_COPIED:
        flags.append(f"Copied: {figures['copied_texts']:.0%} of the texts stand in the corpus.")
    return tuple(flags)


def _openings(rows):
    """Counter from first words to their shares."""
    counts = collections.Counter(row[0] for row in rows if row)
    total = sum(counts.values())
    return collections.Counter({word: count / total for word, count in counts.items()})
