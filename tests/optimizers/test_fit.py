"""`fit` with averaged weights, under each backend's own compilation."""

import keras
import numpy as np
import pytest

from keras_elf.optimizers import AdamW, Muon, WarmupSchedule
from tests.optimizers.stepping import averages_of, values_of, worst_error

X = np.float32(np.random.default_rng(0).standard_normal((32, 4)))
Y = np.float32(np.random.default_rng(1).standard_normal((32, 2)))


def tiny_model(optimizer):
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(3, activation="tanh"), keras.layers.Dense(2)]
    )
    model.compile(optimizer, loss="mse")
    return model


def fit(model, batch_size, epochs=1):
    return model.fit(X, Y, batch_size=batch_size, epochs=epochs, shuffle=False, verbose=0)


@pytest.mark.parametrize("steps", [None, 2])
def test_fit_keeps_raw_weights_and_goes_on(steps):
    """Two fits of one epoch against single steps, whose weights a NumPy loop averages."""
    batch = 8 // (steps or 1)
    arguments = {"ema_momentum": 0.9, "gradient_accumulation_steps": steps}
    fitted = tiny_model(Muon(WarmupSchedule(0.1, 2), **arguments))
    stepped = tiny_model(Muon(WarmupSchedule(0.1, 2), **arguments))
    want = values_of(stepped.trainable_variables)
    for start in 2 * list(range(0, 32, 8)):
        for i in range(start, start + 8, batch):
            stepped.train_on_batch(X[i : i + batch], Y[i : i + batch])
        weights = values_of(stepped.trainable_variables)
        want = [0.9 * a + 0.1 * w for a, w in zip(want, weights, strict=True)]
    fit(fitted, batch)
    fit(fitted, batch)
    assert worst_error(values_of(fitted.trainable_variables), weights) < 1e-5
    assert worst_error(averages_of(fitted.optimizer), want) < 1e-5
    assert worst_error(weights, want) > 1e-2
    assert int(keras.ops.convert_to_numpy(fitted.optimizer.iterations)) == 8


@pytest.mark.parametrize("cls", [Muon, AdamW])
def test_accumulation_equals_one_large_batch(cls):
    ends = []
    for batch, steps in ((8, None), (2, 4)):
        model = tiny_model(cls(0.05, ema_momentum=0.9, gradient_accumulation_steps=steps))
        fit(model, batch, epochs=2)
        ends.append(values_of(model.trainable_variables) + averages_of(model.optimizer))
    assert worst_error(*ends) < 2e-5


def test_loss_falls():
    losses = fit(tiny_model(Muon(0.05)), batch_size=8, epochs=15).history["loss"]
    assert losses[-1] < 0.7 * losses[0]


def test_mixed_bfloat16():
    keras.config.set_dtype_policy("mixed_bfloat16")
    model = tiny_model(Muon(0.05, ema_momentum=0.5, gradient_accumulation_steps=2))
    start = values_of(model.trainable_variables)
    fit(model, batch_size=8)
    for kept in (values_of(model.trainable_variables), averages_of(model.optimizer)):
        assert all(a.dtype == np.float32 and np.isfinite(a).all() for a in kept)
        assert worst_error(kept[:1], start[:1]) > 1e-3
