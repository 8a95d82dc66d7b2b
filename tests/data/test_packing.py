import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_elf.data import load_dataset, pack_documents
from tests.data.letters import Letters, text

pytestmark = pytest.mark.backend_free
DOCUMENTS = st.lists(st.lists(st.integers(2, 90), min_size=1, max_size=12), min_size=1, max_size=9)


def test_by_hand():
    rows = list(pack_documents([[5, 6, 7], [8, 9]], 3, end_id=1))
    assert [r["token_ids"].tolist() for r in rows] == [[5, 6, 7], [1, 8, 9]]
    assert [r["segments"].tolist() for r in rows] == [[0, 0, 0], [0, 1, 1]]
    rest = list(pack_documents([[5, 6, 7], [8, 9]], 3, end_id=1, keep_remainder=True))[-1]
    assert rest["token_ids"].tolist() == [1, 0, 0]
    assert rest["is_valid"].tolist() == [True, False, False]
    assert rest["segments"].tolist() == [0, 1, 1]
    rest = list(pack_documents([[5]], 4, end_id=1, pad_with="end", keep_remainder=True))[-1]
    assert rest["token_ids"].tolist() == [5, 1, 1, 1]
    assert rest["is_valid"].tolist() == [True, True, False, False]


@settings(deadline=None, max_examples=40)
@given(DOCUMENTS, st.integers(1, 9), st.booleans())
def test_nothing_is_lost_and_both_ways_agree(documents, length, keep):
    rows = list(pack_documents(documents, length, end_id=1, keep_remainder=keep))
    stream = [i for d in documents for i in [*d, 1]]
    packed = [int(i) for r in rows for i in r["token_ids"][r["is_valid"]]]
    assert packed == (stream if keep else stream[: len(stream) // length * length])
    numbers = [n for n, d in enumerate(documents) for _ in [*d, 1]]
    for index, row in enumerate(rows):
        own = numbers[index * length : (index + 1) * length]
        valid, segments = row["is_valid"], row["segments"]
        seen = np.equal.outer(segments[valid], segments[valid])
        assert np.array_equal(seen, np.equal.outer(own, own))
        assert not np.equal.outer(segments[~valid], segments[valid]).any()
    if not rows:
        return
    data = load_dataset(
        documents, Letters(), length, batch_size=1, shuffle=False, segments=True,
        keep_remainder=keep,
    )  # fmt: skip
    assert len(data) == len(rows)
    for batch, row in zip(data, rows, strict=True):
        assert set(batch) == set(row)
        for name, array in row.items():
            assert np.array_equal(batch[name][0], array), name
            assert batch[name].dtype == array.dtype


def test_streams_in_bounded_memory():
    def endless():
        while True:
            yield [7] * 5

    rows = pack_documents(endless(), 4, end_id=1)
    assert [text(next(rows)["token_ids"]) for _ in range(3)] == ["$$$$", "$|$$", "$$$|"]


def test_a_document_longer_than_rows_goes_on():
    data = load_dataset(["abcdefgh"], Letters(), 3, batch_size=1, shuffle=False)
    assert [text(b["token_ids"][0]) for b in data] == ["abc", "def", "gh|"]


def test_no_second_end_token():
    data = load_dataset([[5, 1], [6, 7, 1]], Letters(), 5, batch_size=1, shuffle=False)
    assert data[0]["token_ids"].tolist() == [[5, 1, 6, 7, 1]]
