"""Random numbers of rows: the published hash, good distributions, no sign of the batch."""

import numpy as np
import pytest
from keras import ops

from keras_elf import flow


def array(x):
    return ops.convert_to_numpy(x)


# Known answers of the authors' own code, Random123.
@pytest.mark.parametrize(
    "counter, key, want",
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((-1, -1), (-1, -1), (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_gives_the_known_answers(counter, key, want):
    counter, key = (
        [np.array([word & 0xFFFFFFFF], "uint32").view("int32") for word in pair]
        for pair in (counter, key)
    )
    found = [int(array(x).view("uint32")[0]) for x in flow.threefry_2x32(key, counter)]
    assert tuple(found) == want


@pytest.mark.parametrize("draw", [flow.row_uniform, flow.row_normal])
def test_a_row_gets_the_same_in_any_batch(draw):
    whole = array(draw(np.arange(9), (4, 3), 5, 2))
    assert whole.shape == (9, 4, 3) and whole.dtype == "float32"
    parts = [array(draw(np.arange(a, b), (4, 3), 5, 2)) for a, b in ((0, 2), (2, 7), (7, 9))]
    # A backend may round the last bit by a number's place in a tensor.
    np.testing.assert_allclose(whole, np.concatenate(parts), atol=1e-6)
    # A longer row begins with the same numbers, a row of one number has one.
    np.testing.assert_allclose(array(draw(np.arange(9), (6, 3), 5, 2))[:, :4], whole, atol=1e-6)
    assert array(draw(np.arange(9), (), 5, 2)).shape == (9,)
    for other in (draw(np.arange(9), (4, 3), 6, 2), draw(np.arange(9), (4, 3), 5, 3)):
        assert np.abs(array(other) - whole).min(axis=(1, 2)).max() < np.abs(whole).max()
        assert (array(other) != whole).mean() > 0.99


def test_distributions():
    uniform = array(flow.row_uniform(np.arange(64), (1000,), 1, 1))
    assert 0 <= uniform.min() and uniform.max() < 1
    # Means of 64,000 numbers: five standard errors.
    assert abs(uniform.mean() - 0.5) < 5 * 0.289 / 253
    shares = np.histogram(uniform, bins=16, range=(0, 1))[0] / uniform.size
    np.testing.assert_allclose(shares, 1 / 16, atol=5 * np.sqrt(1 / 16 / uniform.size))
    normal = array(flow.row_normal(np.arange(64), (1000,), 1, 2))
    assert abs(normal.mean()) < 5 / 253 and abs(normal.std() - 1) < 5 / 253 / 1.4
    assert abs((normal**4).mean() - 3) < 0.3
    # Neither neighbours in a row nor the same place in two rows know of each other.
    for one, other in ((normal[:, :-1], normal[:, 1:]), (normal[:-1], normal[1:])):
        assert abs(np.mean(one * other)) < 5 / 250


def test_spread_covers_every_run_of_rows():
    for start in (0, 7, 100_000, 2_000_000_000):
        for length in (8, 50, 400):
            spread = array(flow.row_spread(np.arange(start, start + length)))
            for bound in (0.2, 0.6):
                assert abs((spread < bound).mean() - bound) < 1.5 / length * np.log2(length)
