"""BLEU and ROUGE equal the libraries' own results, and figures worked out by hand."""

import collections

import numpy as np
import pytest
import sacrebleu
from rouge_score import rouge_scorer

from keras_elf.evaluation import bleu, exact_match, rouge

pytestmark = pytest.mark.backend_free

TEXTS = ["The Cat sat on the mat .", "a dog barked at night", "", "rain", "he runs to the town"]
REFERENCES = [
    "the cat is sitting on the mat .",
    "A dog barked loudly at night",
    "nothing was written",
    "rain fell",
    "she was running to a town",
]


def grams(row, n):
    return collections.Counter(tuple(row[i : i + n]) for i in range(len(row) - n + 1))


def bleu_by_hand(texts, references):
    """Of lower-cased words separated by blanks; every order has a match."""
    rows = [(t.lower().split(), r.lower().split()) for t, r in zip(texts, references, strict=True)]
    logs = []
    for n in range(1, 5):
        matched = sum(sum((grams(t, n) & grams(r, n)).values()) for t, r in rows)
        logs.append(np.log(matched / sum(max(0, len(t) - n + 1) for t, _ in rows)))
    own, other = (sum(len(row[i]) for row in rows) for i in (0, 1))
    return 100 * np.exp(np.mean(logs) + min(0, 1 - other / own))


def test_bleu_equals_sacrebleu():
    expected = sacrebleu.corpus_bleu(TEXTS, [REFERENCES], lowercase=True, use_effective_order=True)
    assert bleu(TEXTS, REFERENCES) == expected.score > 5
    # Order 4 has no candidates at all here, and is left out, not smoothed.
    short, references = ["The cat", "a dog"], ["the cat", "a dog"]
    assert bleu(short, references) == pytest.approx(100)


def test_bleu_by_hand():
    texts = ["The cat sat on the mat today", "we went home by the long road"]
    references = ["the cat sat on the mat yesterday night", "we went home by the short road"]
    assert bleu(texts, references) == pytest.approx(bleu_by_hand(texts, references))


def test_rouge_equals_rouge_score():
    scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
    found = rouge(TEXTS, REFERENCES)
    for name, value in found.items():
        pairs = zip(TEXTS, REFERENCES, strict=True)
        own = [scorer.score(reference, text)[name].fmeasure for text, reference in pairs]
        assert value == pytest.approx(100 * np.mean(own)), name
    assert found["rouge1"] > found["rouge2"] > 0


def test_rouge_by_hand():
    # 5 and 4 words; 3 in common, of them 2 as neighbours; the longest subsequence has 3.
    found = rouge(["red cat saw green tree"], ["red cat met tree"])
    assert found["rouge1"] == pytest.approx(100 * 2 * 3 / (5 + 4))
    assert found["rouge2"] == pytest.approx(100 * 2 * 1 / (4 + 3))
    assert found["rougeL"] == pytest.approx(100 * 2 * 3 / (5 + 4))
    # Stemmed: "running" and "runs" are one word.
    assert rouge(["running"], ["runs"])["rouge1"] == pytest.approx(100)


def test_exact_match_is_a_share_and_blind_to_blanks():
    assert exact_match(["one two", " one  two ", "two", ""], ["one two"] * 4) == 0.5
    assert exact_match(["One"], ["one"]) == 0.0
    with pytest.raises(ValueError, match="one text for each"):
        exact_match(["one"], ["one", "two"])
