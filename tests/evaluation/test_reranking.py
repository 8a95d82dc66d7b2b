"""`best_of`: which candidates are made, and which one is kept."""

import numpy as np
import pytest

from keras_elf.evaluation import RankedTexts, best_of
from keras_elf.evaluation.overlap import bleu_metric
from tests.evaluation.paper_judge import PaperJudge

pytestmark = pytest.mark.backend_free


class Model:
    """Writes what it is told, and remembers how it was asked."""

    preprocessor = "one"

    def __init__(self, texts):
        self.texts = texts

    def generate(self, inputs, num_samples, seed, **kwargs):
        self.asked = {"inputs": inputs, "num_samples": num_samples, "seed": seed, **kwargs}
        return list(self.texts)


GROUPS = ["the red cat sat", "green", "the red cat sat down", "no", "yes it is", "yes it was"]


def longest(texts, conditions):
    return [len(text) for text in texts]


def test_the_best_of_each_condition():
    model = Model(GROUPS)
    texts = best_of(model, ["one", "two"], n=3, score=longest, seed=1, num_steps=7)
    assert texts == ["the red cat sat down", "yes it was"]
    conditions = ["one"] * 3 + ["two"] * 3
    assert model.asked == {"inputs": conditions, "num_samples": None, "seed": 1, "num_steps": 7}


def test_the_score_sees_texts_with_their_conditions():
    seen = []

    def score(texts, conditions):
        seen.append((texts, conditions))
        return np.arange(6.0)

    ranked = best_of(Model(GROUPS), ["one", "two"], n=3, score=score, return_all=True, seed=9)
    assert seen == [(GROUPS, ["one"] * 3 + ["two"] * 3)]
    assert isinstance(ranked, RankedTexts) and ranked.seed == 9
    assert ranked.candidates == [GROUPS[:3], GROUPS[3:]]
    assert ranked.scores.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert ranked.texts == [GROUPS[2], GROUPS[5]]


def test_unconditional_and_single():
    model = Model(GROUPS)
    assert best_of(model, n=3, num_samples=2, score=longest) == [GROUPS[2], GROUPS[5]]
    assert model.asked["inputs"] is None and model.asked["num_samples"] == 6
    assert best_of(Model(GROUPS), "one", n=6, score=longest) == GROUPS[2]
    # Equal scores: the first.
    assert best_of(Model(GROUPS), "one", n=6, score=lambda t, c: np.zeros(6)) == GROUPS[0]


def test_consensus_is_mean_sentence_bleu_with_the_others():
    ranked = best_of(Model(GROUPS), ["one", "two"], n=3, score="consensus", return_all=True)
    metric = bleu_metric()
    for group, scores in zip(ranked.candidates, ranked.scores, strict=True):
        for i, score in enumerate(scores):
            others = [text for j, text in enumerate(group) if j != i]
            expected = np.mean([metric.sentence_score(group[i], [o]).score for o in others])
            assert score == pytest.approx(expected)
    assert ranked.texts[0] != "green" and ranked.texts[1] != "no"
    rouge = best_of(Model(GROUPS), ["one", "two"], n=3, score="consensus_rouge", return_all=True)
    assert rouge.scores[0, 0] == pytest.approx(100 * (2 * 4 / 9 + 0) / 2)
    assert best_of(Model(["only"]), "one", n=1) == "only"
    assert best_of(Model(["", ""]), "one", n=2) == ""


def test_the_judge_prefers_low_perplexity():
    texts = ["all words differ here", "the the the the", "", "one"]
    ranked = best_of(Model(texts), "c", n=4, score="judge", judge=PaperJudge(), return_all=True)
    assert ranked.texts == ["the the the the"]
    assert ranked.scores[0, 0] == pytest.approx(-3.0)
    assert ranked.scores[0, 1] == pytest.approx(-(3.0 + 3 * 0.1) / 4)
    # What cannot be scored is never chosen over what can.
    assert (ranked.scores[0, 2:] == -np.inf).all()


def test_a_seed_is_drawn_and_told():
    made = [best_of(Model(["a"]), "c", n=1, score=longest, return_all=True).seed for _ in "ab"]
    assert made[0] != made[1]
