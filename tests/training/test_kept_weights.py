"""What was validated is what is kept, restored and saved."""

import pickle

import keras
import numpy as np
import pytest
from keras import ops

from keras_elf.models import ELFGenerator
from keras_elf.objectives import ELFObjective
from keras_elf.optimizers import AdamW, Muon
from keras_elf.training.averages import trained_share
from tests.models import small

pytestmark = pytest.mark.filterwarnings("ignore:.*were too long and were cut.*")


def generator():
    # A table as encoder, no self-conditioning, and mostly AdamW: quick to compile.
    objective = ELFObjective(self_conditioning_probability=0)
    return small.generator("gaussian", preprocessor=None, objective=objective)


def rows(start, stop):
    found = small.rows(stop)
    return {name: array[start:stop] for name, array in found.items()}


def loss(model, **options):
    return model.evaluate(rows(24, 36), batch_size=6, verbose=0, return_dict=True, **options)[
        "loss"
    ]


def fit(model, epochs=1, **options):
    return model.fit(
        rows(0, 24),
        batch_size=6,
        epochs=epochs,
        validation_data=rows(24, 36),
        validation_batch_size=6,
        verbose=0,
        **options,
    ).history


def train(model, learning_rate=0.05, epochs=2):
    model.compile(optimizer=AdamW(learning_rate, ema_momentum=0.8))
    fit(model, epochs)
    return model


@pytest.fixture(scope="module")
def trained():
    model = train(generator())
    assert abs(loss(model) - loss(model, use_averages=False)) > 1e-2
    return model


class Overshoot(keras.callbacks.Callback):
    """Spoils the weights from an epoch on, so that earlier ones validate better."""

    def __init__(self, epoch):
        super().__init__()
        self.epoch = epoch

    def on_epoch_begin(self, epoch, logs=None):
        if epoch >= self.epoch:
            self.model.optimizer.learning_rate = 3.0


def test_early_stopping_restores_what_was_validated():
    model = generator()
    model.compile(optimizer=AdamW(0.05, ema_momentum=0.8))
    stop = keras.callbacks.EarlyStopping("val_loss", patience=1, restore_best_weights=True)
    history = fit(model, 4, callbacks=[Overshoot(1), stop])
    best = min(history["val_loss"])
    assert len(history["val_loss"]) < 4 and history["val_loss"][-1] > best + 0.1
    np.testing.assert_allclose(loss(model), best, rtol=1e-5)
    np.testing.assert_allclose(loss(model, use_averages=False), best, rtol=1e-5)


@pytest.mark.parametrize("weights_only", [True, False])
def test_checkpoint_of_the_best_epoch_validates_as_it_did(tmp_path, weights_only):
    model = generator()
    model.compile(optimizer=AdamW(0.05, ema_momentum=0.8))
    path = tmp_path / ("best.weights.h5" if weights_only else "best.keras")
    keep = keras.callbacks.ModelCheckpoint(
        path, "val_loss", save_best_only=True, save_weights_only=weights_only
    )
    best = min(fit(model, 2, callbacks=[Overshoot(1), keep])["val_loss"])
    if weights_only:
        fresh = generator()
        for other in (fresh, model):  # one without averages, one with others
            other.load_weights(path)
            np.testing.assert_allclose(loss(other), best, rtol=1e-5)
    else:
        for compiled in (True, False):
            other = keras.saving.load_model(path, compile=compiled)
            if not compiled:
                other.compile()
            np.testing.assert_allclose(loss(other), best, rtol=1e-5)


def test_a_checkpoint_in_the_middle_of_an_epoch(tmp_path):
    model, found = generator(), []
    model.compile(optimizer=AdamW(0.05, ema_momentum=0.8))

    class Keep(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 2:
                found.append(self.model.get_weights())
                found.append(self.model.get_weights(use_averages=False))
                self.model.save_weights(tmp_path / "middle.weights.h5")

    fit(model, 2, callbacks=[Keep()])
    averages, raw = found[-2:]
    assert small.error_between(averages, raw) > 1e-3
    other = generator()
    other.load_weights(tmp_path / "middle.weights.h5")
    assert small.all_equal(other.get_weights(), averages)
    # Its optimizer fits, so that training can go on from the raw weights.
    model.load_weights(tmp_path / "middle.weights.h5")
    assert small.all_equal(model.get_weights(), averages)
    assert small.all_equal(model.get_weights(use_averages=False), raw)


def test_weights_set_in_the_middle_of_a_run_are_trained_on():
    model, seen = generator(), []
    other = [value + 0.5 for value in generator().get_weights()]
    model.compile(optimizer=keras.optimizers.SGD(0.0))

    class Set(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 1:
                self.model.set_weights(other)
            elif batch == 2:
                seen.append(self.model.get_weights())

    fit(model, callbacks=[Set()])
    assert small.all_equal(seen[0], other) and small.all_equal(model.get_weights(), other)


def test_get_and_set_weights(trained):
    raw, averages = trained.get_weights(use_averages=False), trained.get_weights()
    assert small.all_equal(raw, small.values(trained.weights))
    assert small.error_between(raw, averages) > 1e-3
    copy = ELFGenerator.from_config(trained.get_config())
    copy.set_weights(averages)
    expected = loss(trained)
    np.testing.assert_allclose(loss(copy), expected, rtol=1e-5)
    np.testing.assert_allclose(loss(copy, use_averages=False), expected, rtol=1e-5)


def test_a_weights_file_read_back_by_its_own_model(trained, tmp_path):
    raw, averages = trained.get_weights(use_averages=False), trained.get_weights()
    trained.save_weights(tmp_path / "own.weights.h5")
    trained.load_weights(tmp_path / "own.weights.h5")
    assert small.all_equal(trained.get_weights(), averages)
    assert small.all_equal(trained.get_weights(use_averages=False), raw)


def test_weights_file_for_another_optimizer(trained, tmp_path):
    trained.save_weights(tmp_path / "w.weights.h5")
    expected = loss(trained)
    for optimizer in (Muon(1e-3), keras.optimizers.SGD(0.1)):
        other = generator()
        other.compile(optimizer=optimizer)
        other.optimizer.build(other.trainable_variables)
        with pytest.warns(UserWarning, match="Skipping variable loading"):
            other.load_weights(tmp_path / "w.weights.h5")
        np.testing.assert_allclose(loss(other), expected, rtol=1e-5)
        assert small.all_equal(other.get_weights(use_averages=False), trained.get_weights())


def test_whole_models(trained, tmp_path):
    expected, raw = trained.get_weights(), trained.get_weights(use_averages=False)
    # By the function too, not by the method alone.
    keras.saving.save_model(trained, tmp_path / "model.keras")
    bare = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    assert small.all_equal(bare.get_weights(), expected)
    assert small.all_equal(bare.get_weights(use_averages=False), expected)
    for whole in (
        keras.saving.load_model(tmp_path / "model.keras"),
        pickle.loads(pickle.dumps(trained)),
    ):
        assert small.all_equal(whole.get_weights(), expected)
        assert small.all_equal(whole.get_weights(use_averages=False), raw)


def test_a_run_that_was_backed_up_goes_on_with_both(tmp_path):
    class Stop(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if epoch == 2:
                raise KeyboardInterrupt

    def backup():
        return keras.callbacks.BackupAndRestore(tmp_path / "backup", delete_checkpoint=False)

    model = generator()
    model.compile(optimizer=AdamW(0.05, ema_momentum=0.8))
    with pytest.raises(KeyboardInterrupt):
        fit(model, 4, callbacks=[Stop(), backup()])

    class Begin(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if not found:
                both = (True, False)
                found.extend(self.model.get_weights(use_averages=one) for one in both)
                found.append(int(ops.convert_to_numpy(self.model.optimizer.iterations)))

    found, again = [], generator()
    again.compile(optimizer=AdamW(0.05, ema_momentum=0.8))
    fit(again, 4, callbacks=[backup(), Begin()])
    assert found[2] == 8  # two epochs of four batches
    assert small.error_between(found[0], found[1]) > 1e-3


def test_compiling_for_a_lower_rate_keeps_both(trained):
    raw, averages = trained.get_weights(use_averages=False), trained.get_weights()
    expected = loss(trained)
    share = trained_share(trained)
    for optimizer in (AdamW(0.01, ema_momentum=0.99), Muon(1e-3, ema_momentum=0.9)):
        trained.compile(optimizer=optimizer)
        assert small.all_equal(trained.get_weights(use_averages=False), raw)
        assert small.all_equal(trained.get_weights(), averages)
        np.testing.assert_allclose(loss(trained), expected, rtol=1e-5)
        assert trained_share(trained) == share
    # The averages move on from where they were.
    model = train(generator())
    before = model.get_weights()
    model.compile(optimizer=AdamW(0.0, weight_decay=None, ema_momentum=0.5))
    raw = model.get_weights(use_averages=False)
    fit(model)
    expected = [r + (a - r) * 0.5**4 for r, a in zip(raw, before, strict=True)]
    assert small.error_between(model.get_weights(), expected) < 1e-5


def test_an_optimizer_without_averages_says_that_they_are_dropped():
    model = train(generator())
    raw = model.get_weights(use_averages=False)
    with pytest.warns(UserWarning, match="this one .SGD. keeps none"):
        model.compile(optimizer=keras.optimizers.SGD(0.1))
    assert small.all_equal(model.get_weights(), raw)


def test_what_is_no_longer_trained_keeps_its_average():
    model = train(generator())
    averages = model.get_weights()
    model.backbone.enable_lora(2)
    model.compile(optimizer=AdamW(0.05, ema_momentum=0.8))
    kept = [v for v in model.weights if "lora" not in v.path]
    assert len(kept) == len(averages) < len(model.weights)
    assert not any(v.trainable for v in kept)
    assert small.all_equal(small.values(kept), averages)


def test_swapping_averages_once_more_is_refused(trained):
    for swap in (
        keras.callbacks.SwapEMAWeights(),
        keras.callbacks.SwapEMAWeights(swap_on_epoch=True),
    ):
        with pytest.raises(ValueError, match="SwapEMAWeights.*Leave the callback out"):
            fit(trained, callbacks=[swap])
        with pytest.raises(ValueError, match="Leave the callback out"):
            loss(trained, callbacks=[swap])
