import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_elf.data.order import RowOrder, Shard

pytestmark = pytest.mark.backend_free


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 3000), st.integers(0, 2**40), st.integers(0, 1000))
def test_an_epoch_has_every_row_once(number, seed, epoch):
    rows = RowOrder(number, seed).rows(epoch, np.arange(number))
    assert np.array_equal(np.sort(rows), np.arange(number))


def test_orders_look_random():
    """Places, neighbours and epochs are as independent as those of a true shuffle."""
    number, epochs = 500, 400
    order = RowOrder(number, seed=1)
    orders = np.stack([order.rows(epoch, np.arange(number)) for epoch in range(epochs)])
    assert len({tuple(o) for o in orders}) == epochs
    # The mean row at a place varies by 144 / sqrt(400) = 7.2 around 249.5.
    assert np.abs(orders.mean(axis=0) - 249.5).max() < 5 * 7.2
    for one, other in ((orders[:, :-1], orders[:, 1:]), (orders[:-1], orders[1:])):
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.02
    # A row comes to its own place once an epoch on average.
    assert 0.8 < (orders == np.arange(number)).sum() / epochs < 1.2
    other_seed = RowOrder(number, seed=2).rows(0, np.arange(number))
    assert (other_seed == orders[0]).mean() < 0.05


def test_a_place_of_a_huge_epoch_costs_nothing():
    order = RowOrder(2**40 + 3, seed=5)
    places = np.array([0, 1, 2**40])
    rows = order.rows(7, places)
    assert len(set(rows.tolist())) == 3 and (rows >= 0).all() and (rows < 2**40 + 3).all()
    assert np.array_equal(order.rows(7, places[::-1])[::-1], rows)


def test_orders_are_the_same_on_every_machine():
    """Written down once: a run resumed with another version must see the same rows."""
    assert RowOrder(10, seed=3).rows(2, np.arange(10)).tolist() == GOLDEN
    assert RowOrder(10, shuffle=False).rows(2, np.arange(10)).tolist() == list(range(10))


GOLDEN = [2, 4, 0, 7, 3, 8, 5, 9, 1, 6]


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_shards_divide_every_place(count):
    places = [Shard((index, count)).places(2, 5).tolist() for index in range(count)]
    assert sorted(sum(places, [])) == list(range(2 * count, 5 * count))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Shard((2, 2)), r"`shard\[0\]` must be a whole number in \[0, 1\]"),
        (lambda: Shard((0, 0)), r"`shard\[1\]` must be"),
        (lambda: Shard(3), "`shard` must be a tuple"),
        (lambda: RowOrder(0), "`num_rows` must be"),
        (lambda: RowOrder(4, seed=-1), "`seed` must be"),
    ],
)
def test_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
