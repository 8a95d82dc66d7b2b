"""`fit` takes the batches of a `TextDataset` in their order, in every form and from any place."""

import keras
import numpy as np
import pytest

from keras_elf.data import PositionTracker, load_dataset
from tests.data.letters import Letters

LENGTH, BATCH, STEPS = 8, 4, 5


@pytest.fixture(scope="module")
def model():
    """Its loss is the mean id of a batch, which tells batches apart."""
    inputs = {
        name: keras.Input((LENGTH,), batch_size=BATCH, dtype=dtype, name=name)
        for name, dtype in (("token_ids", "int32"), ("is_cond", "bool"), ("is_valid", "bool"))
    }
    scale = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
    total = scale(keras.ops.cast(inputs["token_ids"], "float32"))

    class Model(keras.Model):
        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            return keras.ops.mean(y_pred)

    made = Model(inputs, total)
    made.compile(optimizer=keras.optimizers.SGD(0.0), jit_compile=False)
    return made


def dataset(**kwargs):
    ids = np.random.default_rng(0).integers(3, 98, (BATCH * STEPS + 2, LENGTH))
    return load_dataset(ids, Letters(), LENGTH, batch_size=BATCH, packing=False, **kwargs)


class Seen(keras.callbacks.Callback):
    """What was trained on: the loss of each batch, and the position after it."""

    def __init__(self, data=None):
        super().__init__()
        self.data, self.losses, self.positions, self.ends = data, [], [], []

    def on_epoch_begin(self, epoch, logs=None):
        self.running = [0.0]

    def on_train_batch_end(self, batch, logs=None):
        self.running.append(float(logs["loss"]) * (batch + 1))
        self.losses.append(self.running[-1] - self.running[-2])
        if self.data is not None:
            self.positions.append(self.data.position)

    def on_epoch_end(self, epoch, logs=None):
        self.ends.append(len(self.losses))


def fit(model, x, data=None, **kwargs):
    seen = Seen(data)
    callbacks = [seen] if data is None else [PositionTracker(data), seen]
    model.fit(x, shuffle=False, verbose=0, callbacks=callbacks, **kwargs)
    return seen


def expected(data, first, last):
    sums = [data.batch_at(step)["token_ids"].sum(axis=1).mean() for step in range(first, last)]
    assert len(set(sums)) == len(sums)
    return sums


@pytest.mark.parametrize("workers", [1, 2])
def test_fit_takes_the_batches_in_order(model, workers):
    data = dataset(workers=workers)
    seen = fit(model, data, data, epochs=2)
    np.testing.assert_allclose(seen.losses, expected(data, 0, 2 * STEPS), rtol=1e-4)
    assert seen.positions[0] == {"epoch": 0, "batch": 1}
    assert seen.positions[STEPS - 1] == {"epoch": 1, "batch": 0}
    assert data.position == {"epoch": 2, "batch": 0}
    # A second `fit` goes on where the first one stopped.
    again = fit(model, data, data, epochs=1)
    np.testing.assert_allclose(again.losses, expected(data, 2 * STEPS, 3 * STEPS), rtol=1e-4)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.filterwarnings("ignore:.*ran out of data.*")
def test_fit_resumes_in_the_middle_of_an_epoch(model, workers):
    data = dataset(workers=workers)
    data.skip_to(1, 3)
    seen = fit(model, data, data, initial_epoch=1, epochs=3)
    np.testing.assert_allclose(seen.losses, expected(data, STEPS + 3, 3 * STEPS), rtol=1e-4)
    # The rest of the epoch that was cut off, then a whole one.
    assert seen.ends == [STEPS - 3, 2 * STEPS - 3]
    assert seen.positions[0] == {"epoch": 1, "batch": 4}
    assert data.position == {"epoch": 3, "batch": 0}
