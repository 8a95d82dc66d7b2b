"""After a failure the model is as it was, and the first error is the one shown."""

import os
import signal

import keras
import numpy as np
import pytest

from keras_elf.encoders import TransformerEncoder, pretrain
from keras_elf.objectives import ELFObjective
from tests.models import small

pytestmark = pytest.mark.filterwarnings("ignore:.*were too long and were cut.*")
NUMBER = 4 * small.BATCH


class Broken(RuntimeError):
    """What the tests' objective raises."""


@keras.saving.register_keras_serializable(package="keras_elf_tests")
class Fails(ELFObjective):
    """Raises `error`, if there is one, where its step is traced or run."""

    error = None

    def __call__(self, *args, **kwargs):
        if self.error is not None:
            raise self.error
        return super().__call__(*args, **kwargs)


@pytest.fixture
def model():
    """A model that was trained for a step, so that it has averages of its own."""
    made = small.generator("gaussian", objective=Fails())
    made.compile(optimizer=small.muon(), jit_compile=small.BACKEND == "jax")
    made.fit(small.rows(small.BATCH), batch_size=small.BATCH, verbose=0)
    return made


def everything(model):
    return small.values([*model.variables, *model.optimizer.variables])


def retrace(model):
    model.train_function = model.test_function = model.predict_function = None


CALLS = {
    "fit": lambda model, x: model.fit(x, batch_size=small.BATCH, verbose=0),
    "evaluate": lambda model, x: model.evaluate(x, batch_size=small.BATCH, verbose=0),
    "train_on_batch": lambda model, x: model.train_on_batch(x),
    "test_on_batch": lambda model, x: model.test_on_batch(x),
}


@pytest.mark.parametrize(
    "name, error",
    [
        ("fit", KeyboardInterrupt("first")),
        ("evaluate", Broken("first")),
        ("train_on_batch", Broken("first")),
        ("test_on_batch", KeyboardInterrupt("first")),
    ],
)
def test_a_failed_first_step_changes_nothing(model, name, error):
    x = small.rows(small.BATCH)
    before = everything(model)
    model.objective.error = error
    retrace(model)
    with pytest.raises(type(error), match="first"):
        CALLS[name](model, x)
    weights = [v.path for v in [*model.variables, *model.optimizer.variables]]
    for path, old, new in zip(weights, before, everything(model), strict=True):
        if "seed" not in path and not path.startswith(("loss", "denoise_loss", "decode_loss")):
            np.testing.assert_array_equal(old, new, err_msg=path)
    # And it works on.
    model.objective.error = None
    retrace(model)
    CALLS["evaluate"](model, x)
    CALLS[name](model, x)
    assert np.isfinite(np.concatenate([v.ravel() for v in everything(model)])).all()


def test_predict_gives_the_values_back(model, monkeypatch):
    before = everything(model)

    def fail(*args, **kwargs):
        raise Broken("first")

    with monkeypatch.context() as patch:
        patch.setattr(model.encoder, "encode", fail)
        for predict in (model.predict, model.predict_on_batch):
            retrace(model)
            with pytest.raises(Broken, match="first"):
                predict(small.rows(small.BATCH))
    assert small.all_equal(before, everything(model))
    retrace(model)
    assert model.predict(small.rows(small.BATCH), verbose=0)["clean"].shape[0] == small.BATCH


class Interrupt(keras.callbacks.Callback):
    """Ctrl-C, or an error, after some batch."""

    def on_train_batch_end(self, batch, logs=None):
        if batch == 1:
            raise KeyboardInterrupt


def test_an_interrupted_run_keeps_the_steps_it_made(model):
    with pytest.raises(KeyboardInterrupt):
        model.fit(small.rows(NUMBER), batch_size=small.BATCH, verbose=0, callbacks=[Interrupt()])
    assert int(keras.ops.convert_to_numpy(model.optimizer.iterations)) == 3
    CALLS["evaluate"](model, small.rows(NUMBER))


@pytest.mark.skipif(small.BACKEND != "jax", reason="only JAX hands over the memory of the values")
def test_ctrl_c_while_a_step_runs_waits_for_its_results(model):
    """The signal comes after the launch, when the step owns the memory of the weights."""
    step = model._make_function(_Launched(model.train_step))
    model.make_train_function()
    model.train_function = step
    with pytest.raises(KeyboardInterrupt):
        model.fit(small.rows(NUMBER), batch_size=small.BATCH, verbose=0)
    assert int(keras.ops.convert_to_numpy(model.optimizer.iterations)) == 2
    retrace(model)
    CALLS["evaluate"](model, small.rows(NUMBER))


class _Launched:
    """A compiled step that is interrupted between its launch and its end."""

    def __init__(self, step):
        import jax

        self.step = jax.jit(step, donate_argnums=0)

    def __call__(self, state, data):
        results = self.step(state, data)
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(10):  # Signals are acted on between two lines of Python.
            pass
        return results


class _SecondIsBad(keras.utils.PyDataset):
    """Its first batch is good, and its second cannot be had."""

    def __init__(self):
        super().__init__()
        self.rows = small.rows(small.BATCH)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        if index == 1:
            raise Broken("second")
        return self.rows


@pytest.mark.skipif(small.BACKEND == "torch", reason="PyTorch makes one step at a time")
def test_bad_data_for_a_later_step_of_one_execution(model):
    model.compile(optimizer=small.muon(), steps_per_execution=2, jit_compile=small.BACKEND == "jax")
    with pytest.raises(Exception, match="second"):
        model.fit(_SecondIsBad(), verbose=0, shuffle=False)
    assert int(keras.ops.convert_to_numpy(model.optimizer.iterations)) <= 1
    CALLS["evaluate"](model, small.rows(NUMBER))


def test_a_failed_pretraining_leaves_the_encoder(monkeypatch):
    encoder = TransformerEncoder(small.VOCABULARY_SIZE, small.LATENT_DIM, depth=1, num_heads=2)
    before = small.values(encoder.variables)

    def fail(*args, **kwargs):
        raise Broken("first")

    monkeypatch.setattr(encoder, "encode", fail)
    rows = small.rows(small.BATCH)
    rows = {name: rows[name] for name in ("token_ids", "is_valid")}
    with pytest.raises(Broken, match="first"):
        pretrain(encoder, rows, batch_size=small.BATCH, verbose=0)
    assert small.all_equal(before, small.values(encoder.variables))
