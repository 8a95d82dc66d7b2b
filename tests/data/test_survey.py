"""What rows suit a text: short texts one a row, documents packed, lengths that nearly all fit."""

import numpy as np
import pytest

from keras_elf.data.survey import LONGEST_LINE, TextSurvey, survey
from tests.data import small

pytestmark = pytest.mark.backend_free


def of(lengths, conditions=None, num_texts=None):
    conditions = None if conditions is None else np.array(conditions)
    return TextSurvey(num_texts or len(lengths), np.array(lengths), conditions)


def test_short_texts_have_rows_of_their_own_and_documents_do_not():
    alone, why = of([13] * 500).one_row_each()
    assert alone and "13 tokens" in why
    alone, why = of([13] * 400 + [900] * 100).one_row_each()
    assert not alone and str(LONGEST_LINE) in why


def test_rows_of_a_preset_that_short_texts_would_leave_empty_are_packed():
    assert of([13] * 500).one_row_each(sequence_length=16)[0]
    assert not of([13] * 500).one_row_each(sequence_length=1024)[0]
    assert of([13] * 500, [5] * 500).one_row_each(sequence_length=1024)[0]  # pairs


def test_a_few_long_texts_do_not_make_all_rows_long():
    assert of([13] * 300 + [90]).row_lengths(packed=False) == (13, None)
    assert of([13] * 300 + [15]).row_lengths(packed=False) == (15, None)
    assert of([7] * 300, [4] * 300).row_lengths(packed=False) == (11, 4)


def test_rows_are_counted():
    assert of([32] * 10).num_rows(True, 64) == 5
    assert of([32] * 10, num_texts=1000).num_rows(True, 64) == 500
    assert of([32] * 10).num_rows(False, 64) == 10


def test_a_survey_counts_tokens_with_the_end_and_leaves_out_blanks():
    verses = small.verses()[:5]
    found = survey([(None, v) for v in [*verses, " "]], small.tokenizer())
    ids = small.tokenizer().tokenize(verses)
    assert found.num_texts == 5 and not found.conditional
    assert found.lengths.tolist() == [len(row) + 1 for row in ids]
    pairs = survey([([3, 4], [5, 6, 7])], small.tokenizer())
    assert (pairs.lengths.tolist(), pairs.condition_lengths.tolist()) == ([4], [2])
    with pytest.raises(ValueError, match="at least one text"):
        survey([(None, "  ")], small.tokenizer())
