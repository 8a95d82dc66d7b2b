"""Numbers in words are right, can be read back, and their splits share nothing."""

import pytest

from keras_elf.testing import (
    exact_match,
    number_pairs,
    number_to_digits,
    number_to_words,
    split_number_pairs,
    words_to_number,
)

pytestmark = pytest.mark.backend_free


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "zero"),
        (9, "nine"),
        (10, "ten"),
        (13, "thirteen"),
        (20, "twenty"),
        (42, "forty two"),
        (100, "one hundred"),
        (219, "two hundred nineteen"),
        (1204, "one thousand two hundred four"),
        (90_017, "ninety thousand seventeen"),
        (300_000, "three hundred thousand"),
        (
            999_999,
            "nine hundred ninety nine thousand nine hundred ninety nine",
        ),
    ],
)
def test_known_numbers(number, words):
    assert number_to_words(number) == words
    assert words_to_number(words) == number


def test_words_are_read_back():
    numbers = [*range(3000), *range(3000, 1_000_000, 97)]
    assert [words_to_number(number_to_words(number)) for number in numbers] == numbers


@pytest.mark.parametrize(
    "words",
    [
        "",
        "two twenty",
        "one one",
        "hundred",
        "thousand",
        "four two hundred",
        "one  two",
        "cat",
        "zero one",
        "one thousand thousand",
        "two hundred zero",
    ],
)
def test_other_words_are_no_number(words):
    assert words_to_number(words) is None


def test_digits_have_blanks_between():
    assert number_to_digits(1204) == "1 2 0 4"


def test_pairs_belong_together_and_differ():
    pairs = number_pairs(500, seed=1, maximum=999_999)
    assert len(set(pairs["condition"])) == 500
    for digits, words in zip(pairs["condition"], pairs["target"], strict=True):
        assert number_to_words(int(digits.replace(" ", ""))) == words


def test_all_numbers_can_be_drawn():
    pairs = number_pairs(350, maximum=349)
    assert sorted(map(words_to_number, pairs["target"])) == list(range(350))
    with pytest.raises(ValueError, match="There are 350"):
        number_pairs(351, maximum=349)


def test_a_split_shares_no_number_and_seeds_decide():
    train, held_out = split_number_pairs(800, 150, seed=2)
    assert (len(train["target"]), len(held_out["target"])) == (800, 150)
    assert not set(train["condition"]) & set(held_out["condition"])
    assert split_number_pairs(800, 150, seed=2) == (train, held_out)
    assert split_number_pairs(800, 150, seed=3) != (train, held_out)


def test_exact_match_is_a_share_of_whole_texts():
    references = ["one", "forty two", "ten", "two"]
    assert exact_match([" one", "forty  two", "ten one", ""], references) == 0.5
    with pytest.raises(ValueError, match="same length"):
        exact_match(["one"], references)
    with pytest.raises(ValueError, match="single str"):
        exact_match("one", "one")
