import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_elf.data import check_token_ids, cut_at_end, make_rows, strip_prefix

pytestmark = pytest.mark.backend_free

PAD, END = 0, 1
IDS = st.lists(st.integers(2, 99), max_size=12)


def rows_of(targets, conditions=None, **kwargs):
    kwargs = {"sequence_length": 6, "pad_id": PAD, "end_id": END, **kwargs}
    return make_rows(targets, conditions, **kwargs)


def test_layout_with_condition():
    rows, number_cut = rows_of([[7, 8]], [[5, 6]])
    assert rows["token_ids"].tolist() == [[5, 6, 7, 8, END, PAD]]
    assert rows["is_cond"].tolist() == [[True, True, False, False, False, False]]
    assert rows["is_valid"].tolist() == [[True] * 5 + [False]]
    assert number_cut == 0
    assert rows["token_ids"].dtype == np.int32
    assert rows["is_cond"].dtype == rows["is_valid"].dtype == bool


def test_cut_target_gets_no_end_token():
    rows, number_cut = rows_of([[2, 3, 4, 5, 6, 7, 8], [2, 3, 4, 5, 6, 7], [2, 3, 4, 5, 6]])
    assert rows["token_ids"].tolist() == [
        [2, 3, 4, 5, 6, 7],  # cut
        [2, 3, 4, 5, 6, 7],  # whole, but no place for the end token
        [2, 3, 4, 5, 6, END],
    ]
    assert number_cut == 1


def test_long_condition_is_cut_and_leaves_room():
    rows, number_cut = rows_of([[7, 8]], [[2, 3, 4, 5]], condition_length=2)
    assert rows["token_ids"].tolist() == [[2, 3, 7, 8, END, PAD]]
    assert number_cut == 1
    rows, number_cut = rows_of([[7]], [list(range(2, 12))])
    assert rows["token_ids"].tolist() == [[2, 3, 4, 5, 6, 7]] and number_cut == 1


def test_pad_with_end_is_still_padding():
    rows, _ = rows_of([[7]], pad_with="end")
    assert rows["token_ids"].tolist() == [[7, END, END, END, END, END]]
    assert rows["is_valid"].tolist() == [[True, True, False, False, False, False]]


def test_end_token_is_neither_doubled_nor_forced():
    assert rows_of([[7, END]])[0]["token_ids"].tolist() == [[7, END, PAD, PAD, PAD, PAD]]
    rows, _ = rows_of([[7]], add_end_token=False)
    assert rows["token_ids"].tolist() == [[7, PAD, PAD, PAD, PAD, PAD]]


@settings(deadline=None, max_examples=50)
@given(
    pairs=st.lists(st.tuples(IDS, IDS), min_size=1, max_size=4),
    sequence_length=st.integers(2, 16),
    data=st.data(),
)
def test_properties(pairs, sequence_length, data):
    condition_length = data.draw(st.integers(1, sequence_length - 1))
    targets, conditions = [t for t, _ in pairs], [c for _, c in pairs]
    rows, number_cut = rows_of(
        targets, conditions, sequence_length=sequence_length, condition_length=condition_length
    )
    cuts = 0
    for row, (target, condition) in enumerate(pairs):
        ids, is_cond, is_valid = (
            rows[k][row].tolist() for k in ("token_ids", "is_cond", "is_valid")
        )
        kept = condition[:condition_length]
        whole = kept + target + [END]
        assert ids[: sum(is_valid)] == whole[:sequence_length]
        assert is_valid == sorted(is_valid, reverse=True)
        assert is_cond == [i < len(kept) for i in range(sequence_length)]
        assert all(i == PAD for i, valid in zip(ids, is_valid, strict=True) if not valid)
        cuts += len(kept) < len(condition) or len(kept) + len(target) > sequence_length
    assert number_cut == cuts


def test_postprocessing_equals_the_public_code(reference):
    ref = reference("jax/postprocess")
    masked = cut_at_end(ref["ids"], int(ref["eos"]), int(ref["pad"]))
    np.testing.assert_array_equal(masked, ref["masked"])
    shifted = strip_prefix(ref["ids"], ref["shift"], int(ref["pad"]))
    np.testing.assert_array_equal(shifted, ref["shifted"])
    assert masked.dtype == shifted.dtype == np.int32


@settings(deadline=None, max_examples=30)
@given(target=IDS, condition=IDS)
def test_postprocessing_undoes_the_layout(target, condition):
    rows, _ = rows_of([target], [condition], sequence_length=32)
    ids = strip_prefix(rows["token_ids"], rows["is_cond"].sum(axis=1), PAD)
    ids = cut_at_end(ids, END, PAD)
    assert ids[0].tolist() == target + [PAD] * (32 - len(target))


def test_prefix_of_the_whole_row():
    assert strip_prefix([[3, 4]], [2], PAD).tolist() == [[PAD, PAD]]


@pytest.mark.parametrize(
    "kwargs, message",
    [
        (dict(targets=[]), "`targets` must hold at least one"),
        (dict(targets=[[2]], conditions=[]), "`conditions` must hold at least one"),
        (dict(targets=[[2], [3]], conditions=[[2]]), "1 conditions, 2 targets"),
        (dict(targets=[[2], [1.5]]), r"whole numbers.*\[1.5\] at index 1"),
        (dict(targets=[[2], "text"]), "'text' at index 1"),
        (dict(targets=[[2], [True]]), "at index 1"),
        (dict(targets=[[2, [3]]]), "at index 0"),
        (dict(targets=[[2, -3]]), "-3 at index"),
        (dict(targets=[[2**31]]), "2147483648 at index"),
        (dict(targets=[[2]], sequence_length=0), "`sequence_length` must be"),
        (dict(targets=[[2]], sequence_length=2.5), "`sequence_length` must be"),
        (dict(targets=[[2]], condition_length=6), "`condition_length` must be smaller"),
        (dict(targets=[[2]], condition_length=0), "`condition_length` must be"),
        (dict(targets=[[2]], pad_with="eos"), "`pad_with` must be one of"),
    ],
)
def test_refused(kwargs, message):
    with pytest.raises(ValueError, match=message):
        rows_of(kwargs.pop("targets"), kwargs.pop("conditions", None), **kwargs)


def test_ids_outside_the_vocabulary():
    check_token_ids([[0, 9], [3]], 10)
    check_token_ids(np.zeros((2, 3), "int32"), 1)
    with pytest.raises(ValueError, match=r"\[0, 10\).*Received: 10 at index \[1, 2\]"):
        check_token_ids([[0], [1, 2, 10]], 10)
    with pytest.raises(ValueError, match=r"Received: -1 at index \[0, 1\]"):
        check_token_ids(np.array([[0, -1]]), 10)


@pytest.mark.parametrize("lengths", [[1], [1, 5], [-1, 0], [0.5, 1.0]])
def test_wrong_prefix_lengths(lengths):
    with pytest.raises(ValueError, match="`prefix_lengths` must be 2 whole numbers"):
        strip_prefix(np.zeros((2, 4), "int32"), lengths, PAD)


def test_wrong_matrix():
    with pytest.raises(ValueError, match="shape"):
        cut_at_end([1, 2], END, PAD)
    with pytest.raises(ValueError, match="float64"):
        cut_at_end([[1.0, 2.0]], END, PAD)
