"""`fit` and `evaluate` on real verses, as each backend compiles them."""

import types

import keras
import numpy as np
import pytest
from keras import ops

from keras_elf.models import averaged_weights
from keras_elf.objectives import ELFObjective
from keras_elf.optimizers import AdamW, ParameterAveraging
from tests.models import small

compiled_only = pytest.mark.skipif(small.BACKEND == "torch", reason="PyTorch traces nothing")
pytestmark = pytest.mark.filterwarnings("ignore:.*were too long and were cut.*")
NUMBER = 10 * small.BATCH


class Watch(keras.callbacks.Callback):
    """What a run of `fit` looked like from inside."""

    def __init__(self):
        super().__init__()
        self.traces, self.seeds, self.starts, self.ends = [], [], [], []

    def on_train_batch_begin(self, batch, logs=None):
        if batch == 0:
            self.starts.append(small.current_values(self.model))

    def on_train_batch_end(self, batch, logs=None):
        self.traces.append(self.model.objective.traces)
        self.ends.append(small.current_values(self.model))
        self.seeds.append(tuple(small.values([self.model.seed_generator.state])[0].tolist()))


def fit(model, x, epochs=1, **kwargs):
    kwargs = {"batch_size": small.BATCH, "shuffle": False, "verbose": 0, **kwargs}
    return model.fit(x, epochs=epochs, **kwargs)


def evaluate(model, x, **kwargs):
    return model.evaluate(x, batch_size=small.BATCH, verbose=0, return_dict=True, **kwargs)


def states(model):
    """Everything that a training step reads or writes."""
    return [*model.variables, *model.optimizer.variables]


@pytest.fixture(scope="module")
def run():
    """One model through two runs of `fit`, with what was seen on the way."""
    model = small.generator(objective=small.CountingObjective())
    # Left to itself, Keras does without XLA on machines that have TensorFlow and CPUs alone.
    model.compile(optimizer=small.muon(), jit_compile=small.BACKEND != "torch")
    out = types.SimpleNamespace(model=model, x=small.rows(NUMBER))
    out.encoder_before = small.values(model.encoder.variables)
    out.losses = [evaluate(model, out.x)]
    out.watches, out.histories, out.afterwards = [], [], []
    for epochs in (4, 3):
        out.watches.append(Watch())
        out.histories.append(fit(model, out.x, epochs, callbacks=[out.watches[-1]]).history)
        out.afterwards.append(small.values(model.variables))
        out.losses.append(evaluate(model, out.x))
    out.snapshot = small.values(states(model))
    return out


def test_both_losses_fall(run):
    first, second, third = run.losses
    for name in ("denoise_loss", "decode_loss", "loss"):
        assert first[name] > 1.05 * second[name] > 1.05 * third[name], name
    history = run.histories[0]
    assert set(history) == {"loss", "denoise_loss", "decode_loss"}
    assert history["decode_loss"][-1] < 0.9 * history["decode_loss"][0]
    # Published weights of the branches, over what was reported for each.
    for losses in run.losses:
        np.testing.assert_allclose(
            losses["loss"], 0.2 * losses["decode_loss"] + 0.8 * losses["denoise_loss"], rtol=0.05
        )


def test_every_step_draws_anew(run):
    seeds = [seed for watch in run.watches for seed in watch.seeds]
    assert len(set(seeds)) == len(seeds) == 7 * NUMBER // small.BATCH


@compiled_only
def test_one_trace_serves_all_steps_of_both_fits(run):
    traces = [count for watch in run.watches for count in watch.traces]
    assert len(traces) == 70
    assert traces[0] == traces[39], "retraced within the first fit"
    assert traces[40] == traces[-1] == traces[0], "retraced in the second fit"


def test_the_encoder_is_bit_identical(run):
    assert len(run.encoder_before) > 3
    assert small.all_equal(run.encoder_before, small.values(run.model.encoder.variables))
    assert not run.model.encoder.trainable_variables


def test_second_fit_goes_on_from_the_raw_weights(run):
    first, second = run.watches
    # Neither the end of `fit` nor an evaluation in between has touched them.
    assert small.all_equal(first.ends[-1], run.afterwards[0])
    assert small.all_equal(run.afterwards[0], second.starts[0])
    assert small.error_between(second.starts[0], second.ends[0]) > 1e-4
    raw = small.values(run.model.trainable_variables)
    assert small.error_between(raw, small.averages(run.model)) > 1e-3
    assert int(ops.convert_to_numpy(run.model.optimizer.iterations)) == 70


def test_evaluate_is_reproducible_and_uses_the_averages(run):
    model = run.model
    raw, state = small.values(model.variables), small.values([model.seed_generator.state])
    again = evaluate(model, run.x)
    assert again == run.losses[-1]
    untouched = small.values(model.variables)
    for before, after, variable in zip(raw, untouched, model.variables, strict=True):
        if "seed_generator_state" not in variable.path:
            assert np.array_equal(before, after), variable.path
    assert small.all_equal(state, small.values([model.seed_generator.state]))

    plain = evaluate(model, run.x, use_averages=False)
    pairs = model.optimizer.average_pairs()
    kept = small.values([variable for variable, _ in pairs])
    for variable, average in pairs:
        variable.assign(ops.copy(average.value))
    by_hand = evaluate(model, run.x, use_averages=False)
    for (variable, _), value in zip(pairs, kept, strict=True):
        variable.assign(value)
    assert by_hand == again
    assert abs(plain["loss"] - again["loss"]) > 1e-4


def test_averages_come_back_after_an_exception_and_when_nested(run):
    model = run.model
    raw, average = small.values(model.trainable_variables), small.averages(model)
    with pytest.raises(RuntimeError, match="boom"):
        with averaged_weights(model):
            assert small.all_equal(average, small.values(model.trainable_variables))
            with averaged_weights(model):
                assert small.all_equal(average, small.values(model.trainable_variables))
            raise RuntimeError("boom")
    assert small.all_equal(raw, small.values(model.trainable_variables))
    assert small.all_equal(average, small.averages(model))


def _restore(run):
    for variable, value in zip(states(run.model), run.snapshot, strict=True):
        variable.assign(value)


def test_validation_inside_fit_leaves_training_alone(run):
    plain, validated = Watch(), Watch()
    _restore(run)
    fit(run.model, run.x, 2, callbacks=[plain])
    _restore(run)
    history = fit(run.model, run.x, 2, callbacks=[validated], validation_data=run.x).history
    # The seed of evaluation is the one thing that an evaluation moves.
    for variable, one, other in zip(
        run.model.variables, plain.ends[-1], validated.ends[-1], strict=True
    ):
        if "evaluation" not in variable.path and "metrics" not in variable.path:
            if "seed_generator_state" not in variable.path:
                np.testing.assert_allclose(one, other, atol=1e-5, err_msg=variable.path)
    assert plain.seeds == validated.seeds
    after = evaluate(run.model, run.x)
    for name, value in after.items():
        np.testing.assert_allclose(history[f"val_{name}"][-1], value, rtol=1e-5)
    assert history["val_loss"][0] != history["val_loss"][1]


class Batches(keras.utils.PyDataset):
    def __init__(self, x, weights=None):
        super().__init__()
        self.x, self.weights = x, weights

    def __len__(self):
        return len(self.x["token_ids"]) // small.BATCH

    def __getitem__(self, index):
        rows = slice(index * small.BATCH, (index + 1) * small.BATCH)
        batch = {k: v[rows] for k, v in self.x.items()}
        return batch if self.weights is None else (batch, None, self.weights[rows])


def _tf_data(x):
    tf = pytest.importorskip("tensorflow", exc_type=ImportError)
    return tf.data.Dataset.from_tensor_slices(x).batch(small.BATCH)


def _data_loader(x):
    torch = pytest.importorskip("torch")
    listed = [{k: v[i] for k, v in x.items()} for i in range(len(x["token_ids"]))]
    return torch.utils.data.DataLoader(listed, batch_size=small.BATCH)


FORMS = {
    "int array": lambda x: x["token_ids"],
    "ids alone": lambda x: {"token_ids": x["token_ids"]},
    "texts": lambda x: small.texts(2 * small.BATCH),
    "id lists": lambda x: [
        ids[valid].tolist() for ids, valid in zip(x["token_ids"], x["is_valid"], strict=True)
    ],
    "PyDataset": Batches,
    "tf.data": _tf_data,
    "DataLoader": _data_loader,
}


@pytest.fixture(scope="module")
def expected(run):
    _restore(run)
    x = {k: v[: 2 * small.BATCH] for k, v in run.x.items()}
    assert 0.2 < x["is_valid"].mean() < 0.95
    return x, fit(run.model, x).history


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_data_trains_alike(run, expected, form):
    if form == "DataLoader" and small.BACKEND != "torch":
        pytest.skip("a PyTorch loader is for the PyTorch backend")
    x, history = expected
    data = FORMS[form](x)
    _restore(run)
    in_memory = isinstance(data, (np.ndarray, list, dict))
    seen = fit(run.model, data, batch_size=small.BATCH if in_memory else None).history
    for name, losses in history.items():
        np.testing.assert_allclose(seen[name], losses, rtol=1e-5)


def test_sample_weights_of_a_dataset_count(run):
    weights = np.float32(np.arange(NUMBER) % 3 > 0)
    _restore(run)
    data = Batches(run.x, weights)
    if small.BACKEND == "tensorflow":
        # Keras's PyDataset cannot hand a None to TensorFlow; an empty Optional is one to it.
        import tensorflow as tf

        nothing = tf.experimental.Optional.empty(tf.TensorSpec((), "float32"))
        data = tf.data.Dataset.from_tensor_slices((run.x, weights)).batch(small.BATCH)
        data = data.map(lambda x, weight: (x, nothing, weight))
    weighted = run.model.evaluate(data, verbose=0, return_dict=True)
    # A row of which nothing is valid counts nowhere either.
    hidden = {**run.x, "is_valid": run.x["is_valid"] & (weights > 0)[:, None]}
    want, plain = (evaluate(run.model, data) for data in (hidden, run.x))
    for name, value in want.items():
        np.testing.assert_allclose(weighted[name], value, rtol=1e-5)
        assert abs(value - plain[name]) > 1e-4, name


class RepeatedDraws(ELFObjective):
    """Every second row draws the same: four batches of 2 hold what one of 8 holds."""

    def draw(self, shape, seed):
        batch, length, width = shape
        rng = np.random.default_rng(0)
        odd = ops.arange(batch) % 2 == 1
        noise = rng.standard_normal((1, length, width)).astype("float32")
        noise = ops.broadcast_to(noise, (batch, length, width))
        mix = rng.random((1, length)).astype("float32")
        return {
            "noise": noise,
            "decode_noise": noise,
            "t": ops.where(odd, 0.3, 0.6),
            "decode_mix": ops.broadcast_to(mix, (batch, length)),
            "guidance_scale": ops.where(odd, 2.0, 3.0),
            "is_decode": odd,
            "use_self_condition": ops.zeros((batch,), "bool"),
            "order": ops.zeros((batch,)),
        }


class SGD(ParameterAveraging, keras.optimizers.SGD):
    """Averages and accumulation as in Muon, around a step that compiles fast."""


def test_accumulation_of_four_equals_one_large_batch():
    ids = np.random.default_rng(0).integers(3, small.VOCABULARY_SIZE, (16, 6))
    ends, losses = [], []
    for batch_size, steps in ((8, None), (2, 4)):
        objective = RepeatedDraws("per_example", self_conditioning_probability=0)
        model = small.generator("gaussian", objective=objective)
        small.enliven(model, 0.1)
        model.compile(
            optimizer=SGD(
                0.02,
                global_clipnorm=1.0,
                use_ema=True,
                ema_momentum=0.8,
                gradient_accumulation_steps=steps,
            )
        )
        losses.append(fit(model, ids, batch_size=batch_size).history["loss"][-1])
        assert int(ops.convert_to_numpy(model.optimizer.iterations)) == 2
        ends.append([small.values(model.trainable_variables), small.averages(model)])
    for one, other in zip(*ends, strict=True):
        assert small.error_between(one, other) < 1e-5
    assert small.error_between(*ends[0]) > 1e-4
    np.testing.assert_allclose(*losses, rtol=1e-5)


@pytest.mark.slow
def test_run_eagerly():
    # JAX compiles every single operation of an uncompiled step, so it gets no transformer.
    mock = small.BACKEND == "jax"
    objective = ELFObjective(self_conditioning_probability=0)
    model = small.generator("gaussian", objective=objective)
    model.compile(optimizer=keras.optimizers.SGD(0.01), run_eagerly=True)
    before = small.values(model.trainable_variables)
    with small.recorded_forwards(model.backbone, mock=mock) as calls:
        history = fit(model, small.rows(8), batch_size=4).history
    assert len(calls) == 2
    assert np.isfinite(history["loss"]).all()
    assert small.error_between(before, small.values(model.trainable_variables)) > 1e-5


def test_mixed_bfloat16_trains_and_stays_finite():
    keras.config.set_dtype_policy("mixed_bfloat16")
    model = small.generator("gaussian")
    model.compile(optimizer=AdamW(1e-2))
    assert model.backbone.blocks[0].compute_dtype == "bfloat16"
    before = small.values(model.trainable_variables)
    history = fit(model, small.rows(4 * small.BATCH), 6).history
    assert np.isfinite([loss for losses in history.values() for loss in losses]).all()
    assert history["decode_loss"][-1] < 0.9 * history["decode_loss"][0]
    after = small.values(model.trainable_variables)
    assert all(a.dtype == np.float32 and np.isfinite(a).all() for a in after)
    moved = [np.abs(a - b).max() > 0 for a, b in zip(after, before, strict=True)]
    assert all(moved)
