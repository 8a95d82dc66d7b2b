"""Figures of text in any script: what a word is where nobody puts blanks between words."""

import pytest

from keras_elf.evaluation import (
    bleu,
    distinct_n,
    evaluate_generation,
    exact_match,
    looping_texts,
    rouge,
)
from keras_elf.evaluation.overlap import bleu_tokenizer
from keras_elf.evaluation.texts import words

pytestmark = pytest.mark.backend_free

JAPANESE = ["今日は天気がいいです", "本を読みました"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't stop, 3.5 %!", ["don", "'", "t", "stop", ",", "3", ".", "5", "%", "!"]),
        ("我爱你。", ["我", "爱", "你", "。"]),
        ("GPT我爱", ["gpt", "我", "爱"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("می‌خواهم", ["می‌خواهم"]),
        ("cafe\u0301 a_b", ["cafe\u0301", "a_b"]),
        ("안녕 하세요", ["안녕", "하세요"]),
        ("ไทย", ["ไ", "ท", "ย"]),
        (" \t\n", []),
    ],
)
def test_words(text, expected):
    assert words(text) == expected


def test_scripts_without_blanks_are_not_empty():
    report = evaluate_generation(JAPANESE, judge=None)
    assert not report.flags
    assert report.figures["unscored_texts"] == 0
    assert 0 < distinct_n(JAPANESE, 2) <= 1


def test_loops_are_found_in_any_script():
    assert looping_texts(["我爱你" * 40]) == looping_texts(["I love you " * 40]) == 1.0


def test_overlap_in_other_scripts():
    reference = ["我们今天去公园散步了"]
    assert 50 < bleu(["我们今天去公园走路了"], reference) < 90
    assert 50 < rouge(["我们今天去公园走路了"], reference)["rouge1"] < 100
    # A name in kana does not make Chinese text Japanese.
    mixed = ["我爱你中国人民", "我们今天在优の良品买了很多的东西"]
    assert bleu_tokenizer(mixed) == "zh" and bleu_tokenizer(JAPANESE) == "char"
    assert 0 < bleu(["本を読みます"], ["本を読みました"]) < 100
    assert rouge(["он читает книгу"], ["он читал книгу"])["rouge1"] == pytest.approx(200 / 3)
    assert exact_match(JAPANESE, JAPANESE) == 1


@pytest.mark.parametrize(
    "text", ["the cat sat on the mat", "我们今天去公园", "本を読みました", "a"]
)
def test_identical_texts_score_exactly_the_most(text):
    assert bleu([text] * 3, [text] * 3) <= 100.0
    assert max(rouge([text], [text]).values()) <= 100.0
