"""Entropy, distinct-n and repetition, against counting by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_elf.data import king_james_verses
from keras_elf.evaluation import (
    distinct_n,
    entropy_floor,
    looping_texts,
    repeated_ngrams,
    unigram_entropy,
)
from keras_elf.evaluation.collapse import low_entropy
from keras_elf.evaluation.entropy import entropies
from keras_elf.evaluation.texts import words

pytestmark = pytest.mark.backend_free
FEW = settings(max_examples=25, deadline=None)
ROWS = st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=30), min_size=1, max_size=4)


def test_entropy_by_hand():
    assert unigram_entropy([[1, 2, 3, 4]]) == pytest.approx(math.log(4))
    assert unigram_entropy([[7, 7, 7]]) == 0
    assert unigram_entropy([[1, 2], [7, 7]]) == pytest.approx(math.log(2) / 2)
    half = -(0.5 * math.log(0.5) + 2 * 0.25 * math.log(0.25))
    assert unigram_entropy([np.array([1, 1, 2, 3])]) == pytest.approx(half)
    assert unigram_entropy(["a b", "c c"], lambda texts: [t.split() for t in texts]) == (
        pytest.approx(math.log(2) / 2)
    )


@FEW
@given(ROWS)
def test_bounds(rows):
    assert all(
        0 <= h <= math.log(len(row)) + 1e-9 for h, row in zip(entropies(rows), rows, strict=True)
    )
    assert 0 < distinct_n(rows, 1) <= 1
    assert 0 <= repeated_ngrams(rows, 2) < 1
    # The order of tokens and their names do not matter to unigrams.
    renamed = [[100 - i for i in reversed(row)] for row in rows]
    assert unigram_entropy(renamed) == pytest.approx(unigram_entropy(rows))


def test_distinct_and_repetition_by_hand():
    texts = ["a b a b", "A c"]
    assert distinct_n(texts, 1) == 3 / 6
    assert distinct_n(texts, 2) == 3 / 4  # ab, ba, ac of ab, ba, ab, ac
    assert repeated_ngrams(texts, 2) == pytest.approx((1 / 3 + 0) / 2)
    assert repeated_ngrams(["a b c"], 4) == 0
    assert distinct_n([[1, 1, 1, 1]], 2) == 1 / 3
    assert words("Don't stop, NOW.") == ["don", "'", "t", "stop", ",", "now", "."]


def test_looping_texts():
    phrase = "so it goes on and "
    assert looping_texts([phrase * 3, phrase * 2, "short"]) == pytest.approx(1 / 3)
    assert looping_texts([phrase * 2], times=2) == 1
    assert looping_texts([""]) == 0


def test_entropy_floor():
    assert entropy_floor(1024) == pytest.approx(5.0)
    assert entropy_floor(1) == 0 and entropy_floor(10**6) == pytest.approx(5.0)
    floors = entropy_floor(np.arange(1, 2000))
    assert (np.diff(floors) >= 0).all()
    assert (floors[1:] < np.log(np.arange(2, 2000))).all()


def test_low_entropy_ignores_short_texts():
    assert low_entropy([0.0], [3]) is None
    mean, floor, share = low_entropy([0.0, 3.0, 0.5], [3, 32, 32])
    assert mean == 1.75 and floor == pytest.approx(2.5) and share == 0.5


def test_verses_are_above_the_floor():
    rows = [words(verse) for verse in king_james_verses()[::30]]
    mean, floor, share = low_entropy(entropies(rows), [len(row) for row in rows])
    assert mean > floor + 0.3 and share < 0.05
