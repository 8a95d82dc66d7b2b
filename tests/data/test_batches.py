import keras
import numpy as np
import pytest

from keras_elf.data import TokenBatches

pytestmark = pytest.mark.backend_free


def arrays(number=10, length=3):
    ids = np.arange(number * length, dtype="int32").reshape(number, length)
    return {"token_ids": ids, "is_valid": ids >= 0}


def first_ids(batches):
    return [batch["token_ids"][:, 0].tolist() for batch in batches]


def test_an_epoch_serves_rows_once_and_whole():
    batches = TokenBatches(arrays(), 4)
    assert len(batches) == 2
    served = [tuple(row) for batch in batches for row in batch["token_ids"].tolist()]
    assert len(set(served)) == 8
    assert set(served) <= {tuple(row) for row in arrays()["token_ids"].tolist()}
    assert all(b["token_ids"].shape == (4, 3) and b["is_valid"].dtype == bool for b in batches)


def test_remainder():
    batches = TokenBatches(arrays(), 4, drop_remainder=False)
    assert [len(b) for b in first_ids(batches)] == [4, 4, 2]
    assert sorted(sum(first_ids(batches), [])) == list(range(0, 30, 3))
    assert len(TokenBatches(arrays(8), 4, drop_remainder=False)) == 2
    assert len(TokenBatches(arrays(2), 4, drop_remainder=False)) == 1


def test_orders_are_seeded_and_resumable():
    one, same, other = (TokenBatches(arrays(100), 10, seed=s) for s in (3, 3, 4))
    start = first_ids(one)
    assert start == first_ids(same) != first_ids(other)
    assert start == first_ids(one), "reading must not change the order"
    one.on_epoch_begin()
    one.on_epoch_end()
    assert first_ids(one) != start
    one.on_epoch_begin()
    one.on_epoch_end()
    same.skip_to(2)
    assert first_ids(one) == first_ids(same)
    same.skip_to(0)
    assert first_ids(same) == start


def test_no_shuffle():
    batches = TokenBatches(arrays(4), 2, shuffle=False)
    batches.skip_to(1)
    assert first_ids(batches) == [[0, 3], [6, 9]]


@pytest.mark.parametrize("workers", [1, 2])
def test_fit(workers):
    """Every epoch gives the model all full batches, in a new order."""
    seen = []

    class Recorder(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            seen.append(batches.position["epoch"])

    inputs = {
        "token_ids": keras.Input((3,), dtype="int32", name="token_ids"),
        "is_valid": keras.Input((3,), dtype="bool", name="is_valid"),
    }
    total = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")(
        keras.ops.cast(inputs["token_ids"], "float32")
    )

    class Model(keras.Model):
        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            return keras.ops.mean(y_pred)

    model = Model(inputs, total)
    model.compile(optimizer=keras.optimizers.SGD(0.0))
    batches = TokenBatches(arrays(8), 4, workers=workers)
    history = model.fit(batches, epochs=2, verbose=0, shuffle=False, callbacks=[Recorder()])
    # Both batches of an epoch together are all rows, so the mean loss tells that none is missing.
    expected = float(arrays(8)["token_ids"].sum(axis=1).mean())
    np.testing.assert_allclose(history.history["loss"], expected, rtol=1e-6)
    assert seen == [0, 1]


@pytest.mark.parametrize(
    "args, kwargs, message",
    [
        ((arrays(3), 4), {}, r"fewer rows \(3\) than one batch holds \(`batch_size=4`\)"),
        (({}, 4), {}, "`arrays` must be a dict"),
        ((np.zeros((4, 2)), 4), {}, "`arrays` must be a dict.*ndarray"),
        (({"a": np.zeros(4), "b": np.zeros(5)}, 4), {}, "same first dimension.*'b': 5"),
        (({"a": np.zeros(4), "b": 1.0}, 4), {}, "same first dimension"),
        ((arrays(), 0), {}, "`batch_size` must be"),
        ((arrays(), 4), {"seed": -1}, "`seed` must be"),
    ],
)
def test_refused(args, kwargs, message):
    with pytest.raises(ValueError, match=message):
        TokenBatches(*args, **kwargs)


def test_out_of_range():
    batches = TokenBatches(arrays(), 4)
    with pytest.raises(IndexError, match="Batch 2 is out of range"):
        batches[2]
    batches.skip_to(1)
    with pytest.raises(ValueError, match="`epoch` must be"):
        batches.skip_to(-1)
