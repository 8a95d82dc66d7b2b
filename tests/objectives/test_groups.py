"""Groups of rows: taken out, put back, never moved to another device's block."""

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_elf.objectives.groups import RowGroups, group_bounds

SHARES = (0.2, 0.4, 0.4)
shares = st.tuples(st.integers(1, 20), st.integers(1, 20), st.integers(1, 20)).map(
    lambda parts: tuple(p / sum(parts) for p in parts)
)
property_test = settings(max_examples=60, deadline=None)


def array(x):
    return ops.convert_to_numpy(x)


@property_test
@given(st.integers(3, 600), shares)
def test_sizes_sum_and_follow_the_shares(rows, shares):
    first, second = group_bounds(rows, shares)
    sizes = np.diff([0, first, second, rows])
    assert sizes.sum() == rows and sizes.min() >= 1
    # Rounded, unless that would leave a group without a row.
    wanted = np.array(shares) * rows
    if wanted.min() > 1:
        assert np.abs(sizes - wanted).max() <= 1.5


@pytest.mark.parametrize(
    ("rows", "sizes"), [(3, (1, 1, 1)), (4, (1, 1, 2)), (10, (2, 4, 4)), (512, (102, 205, 205))]
)
def test_sizes_at_the_published_shares(rows, sizes):
    first, second = group_bounds(rows, SHARES)
    assert (first, second - first, rows - second) == sizes


@settings(max_examples=10, deadline=None)
@given(st.sampled_from([(1, 3), (1, 8), (2, 6), (4, 3)]), shares)
def test_join_undoes_take(layout, shares):
    blocks, block_rows = layout
    rows = blocks * block_rows
    x = np.arange(rows * 2, dtype="float32").reshape(rows, 2)
    groups = RowGroups(rows, shares, blocks)
    parts = [groups.take(x, group) for group in range(3)]
    assert sum(p.shape[0] for p in parts) == rows
    np.testing.assert_array_equal(array(groups.join(parts)), x)


def test_every_block_gives_its_share_from_its_own_rows():
    """Rows 0-4 lie on the first device, 5-9 on the second."""
    groups = RowGroups(10, SHARES, blocks=2)
    parts = [array(groups.take(np.arange(10), group)).tolist() for group in range(3)]
    assert parts == [[0, 5], [1, 2, 6, 7], [3, 4, 8, 9]]


def test_tensors_of_any_rank():
    groups = RowGroups(6, SHARES, blocks=2)
    for shape in ((6,), (6, 2), (6, 2, 3)):
        x = np.arange(np.prod(shape), dtype="int32").reshape(shape)
        parts = [groups.take(x, group) for group in range(3)]
        assert parts[1].shape == (2, *shape[1:])
        np.testing.assert_array_equal(array(groups.join(parts)), x)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([1, 2, 4]))
def test_shuffle_permutes_within_blocks(seed, blocks):
    rows = 12
    keys = np.random.default_rng(seed).uniform(size=rows).astype("float32")
    x = np.stack([np.arange(rows), np.arange(rows) ** 2], 1)
    groups = RowGroups(rows, SHARES, blocks)
    shuffled = array(groups.shuffle(x, keys))
    np.testing.assert_array_equal(shuffled[:, 1], shuffled[:, 0] ** 2)
    block = rows // blocks
    for start in range(0, rows, block):
        mine = shuffled[start : start + block, 0]
        expected = start + np.argsort(keys[start : start + block])
        np.testing.assert_array_equal(mine, expected)
    # Tensors of one batch are shuffled alike.
    np.testing.assert_array_equal(array(groups.shuffle(x[:, 0], keys)), shuffled[:, 0])


def test_what_does_not_fit():
    assert not RowGroups(2, SHARES).fit
    assert not RowGroups(4, SHARES, blocks=2).fit
    assert not RowGroups(8, (0.0, 0.5, 0.5)).fit
    assert RowGroups(3, SHARES).fit
    assert RowGroups(6, SHARES, blocks=2).fit
    # Blocks that do not divide the batch cannot be kept apart.
    assert RowGroups(9, SHARES, blocks=2).blocks == 1


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="only there")
@pytest.mark.parametrize("jit_compile", [False, True])
def test_batch_size_unknown_while_tracing(jit_compile):
    import tensorflow as tf

    signature = [tf.TensorSpec([None, 2]), tf.TensorSpec([None])]

    @tf.function(input_signature=signature, jit_compile=jit_compile)
    def dynamic(x, keys):
        groups = RowGroups(ops.shape(x)[0], SHARES)
        assert groups.fit and not isinstance(groups.rows, int)
        shuffled = groups.shuffle(x, keys)
        parts = [groups.take(shuffled, group) for group in range(3)]
        return *parts, groups.join(parts)

    for rows in (3, 4, 10):
        x = np.arange(rows * 2, dtype="float32").reshape(rows, 2)
        keys = np.random.default_rng(rows).uniform(size=rows).astype("float32")
        groups = RowGroups(rows, SHARES)
        shuffled = groups.shuffle(x, keys)
        expected = [*(groups.take(shuffled, group) for group in range(3)), shuffled]
        for actual, wanted in zip(dynamic(x, keys), expected, strict=True):
            np.testing.assert_array_equal(array(actual), array(wanted))
