"""Collapse that is seen only beside the data."""

import pytest

from keras_elf.evaluation import corpus_figures, evaluate_generation

pytestmark = pytest.mark.backend_free

CORPUS = [f"{first} fox sees the dog number {i}" for i in range(10) for first in ("the", "a", "my")]


def test_the_corpus_itself_is_all_copied():
    assert corpus_figures(CORPUS, CORPUS) == {
        "openings_distance": 0.0,
        "copied_texts": 1.0,
        "new_4grams": 0.0,
    }


def test_figures_by_hand():
    figures = corpus_figures(["The fox sees a new dog", "", "the fox"], ["the fox sees", "a fox"])
    # "the" opens both of ours that have a word, and half of the corpus.
    assert figures["openings_distance"] == pytest.approx(0.5)
    assert figures["copied_texts"] == 0 and figures["new_4grams"] == 1
    assert "new_4grams" not in corpus_figures(["a b"], ["a b c d"])


def test_openings_and_copies_are_flagged():
    alike = [f"my owl number {i} waits by the {i} doors" for i in range(30)]
    report = evaluate_generation(alike, judge=None, corpus=CORPUS)
    assert any("100% of the texts begin with 'my', and 33%" in flag for flag in report.flags)
    assert not any(flag.startswith("Copied") for flag in report.flags)
    report = evaluate_generation(CORPUS, judge=None, corpus=CORPUS)
    assert [flag.split(":")[0] for flag in report.flags] == ["Copied"]
    # Without the corpus nothing is suspicious.
    assert not evaluate_generation(CORPUS, judge=None).flags


def test_bad_corpora():
    for corpus in ("text", [], [""], [3]):
        with pytest.raises(ValueError, match="corpus"):
            evaluate_generation(CORPUS, judge=None, corpus=corpus)
