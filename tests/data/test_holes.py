"""Texts with holes become rows in which all else is given."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_elf.data.holes import filled_text, hole_rows, split_holes
from tests.data import small

pytestmark = pytest.mark.backend_free
PART = st.one_of(st.integers(1, 99), st.sampled_from(["the LORD", "and God said", "in the land"]))


@given(
    parts=st.lists(PART, min_size=1, max_size=6).filter(
        lambda p: any(isinstance(x, int) for x in p)
    )
)
def test_parts_are_found_in_order(parts):
    text = " ".join(f"<mask:{p}>" if isinstance(p, int) else p for p in parts)
    found = split_holes(text)
    assert [p for p in found if isinstance(p, int)] == [p for p in parts if isinstance(p, int)]
    # Nothing of the text is lost, blanks included.
    assert "".join(f"<mask:{p}>" if isinstance(p, int) else p for p in found) == text


def test_a_hole_of_one_token_needs_no_number():
    assert split_holes("<mask> the LORD") == [1, " the LORD"]


@pytest.mark.parametrize(
    "text",
    ["no hole", "", "<mask:0> x", "<mask:-1> x", "<mask:two>", "< mask >", "<MASK:3>", 3, None],
)
def test_what_is_no_hole(text):
    with pytest.raises(ValueError, match="<mask:8>|must be a str"):
        split_holes(text)


def test_rows():
    tokenizer = small.tokenizer()
    texts = ["<mask:3> the LORD", "And God <mask:2> said <mask>"]
    rows, lengths = hole_rows(texts, tokenizer, 16)
    ids, given_, valid = rows["token_ids"], rows["is_cond"], rows["is_valid"]
    lord = tokenizer(" the LORD")
    assert lengths[0] == 3 + len(lord) and not given_[0, :3].any()
    np.testing.assert_array_equal(ids[0, 3 : lengths[0]], lord)
    for row, length in enumerate(lengths):
        # The end token and the padding behind it are given too, and only the padding is hidden.
        assert ids[row, length] == 1 and given_[row, length:].all()
        assert valid[row, : length + 1].all() and not valid[row, length + 1 :].any()
    assert (~given_[1]).sum() == 3


def test_a_text_that_fills_its_row_or_more():
    tokenizer = small.tokenizer()
    rows, lengths = hole_rows(["<mask:8>"], tokenizer, 8)
    assert lengths[0] == 8 and rows["is_valid"].all() and not rows["is_cond"].any()
    for text in (
        "<mask:9>",
        "<mask:99999999999>",
        "<mask:" + "9" * 5000 + ">",
        "the LORD " * 9 + "<mask>",
    ):
        with pytest.raises(ValueError, match="more than the 8 tokens"):
            hole_rows([text], tokenizer, 8)


@pytest.mark.parametrize(
    "text",
    ["And the <mask:2>, said he.", "go<mask:1>able", "<mask> the LORD", "And God <mask:2>"]
    + ["And <mask> <mask> the", "(<mask:2>)", "the <mask>. And God", "a<mask>"],
)
def test_given_text_comes_back_verbatim_whatever_fills_the_holes(text):
    tokenizer, rng = small.tokenizer(), np.random.default_rng(0)
    rows, _ = hole_rows([text], tokenizer, 24)
    given_ = rows["is_cond"][0]
    pattern = "".join(
        ".*" if isinstance(part, int) else re.escape(part) for part in split_holes(text)
    )
    for _ in range(10):
        drawn = rng.integers(3, small.VOCABULARY_SIZE, 24)
        ids = np.where(given_, rows["token_ids"][0], drawn)
        assert re.fullmatch(pattern, filled_text(text, ids, given_, tokenizer))
