"""`generate`: what it depends on, what it costs, what it gives back."""

import types

import keras
import numpy as np
import pytest
from keras import ops

from keras_elf import samplers
from keras_elf.models import ELFGenerator
from keras_elf.objectives import ELFObjective
from keras_elf.optimizers import AdamW
from keras_elf.samplers import ODESampler, SDESampler
from tests.models import small

pytestmark = pytest.mark.filterwarnings("ignore:.*were too long and were cut.*")
CONDITIONS = ["And", "In the", "God created"]


@pytest.fixture(scope="module")
def model():
    """A conditional model with random heads, so that texts differ."""
    made = small.generator(
        preprocessor=small.preprocessor(condition_length=5, pad_with="end"),
        label_drop_probability=0.3,
        guidance_scale=2.0,
        # The training step is not what is tested here: one forward pass is enough.
        objective=ELFObjective(self_conditioning_probability=0),
    )
    return small.enliven(made)


@pytest.fixture(scope="module")
def on_ids():
    """A model on ids, uncompiled and with a mock in the network's place, to watch the calls."""
    made = small.enliven(small.generator("gaussian", preprocessor=None))
    made.compile(run_eagerly=True)
    with small.recorded_forwards(made.backbone, mock=True):
        yield made


def latents(model, *args, **kwargs):
    """Last latents of a run: unlike token ids, they show any difference."""
    states = []
    ids = model.generate(
        *args, callback=states.append, return_token_ids=True, verbose=False, **kwargs
    )
    last = [s for s in states if s.step == s.num_steps]
    return np.concatenate([ops.convert_to_numpy(s.z) for s in last])[: len(ids)], ids


def test_same_seed_same_text_whatever_the_batch_size(model):
    z, ids = latents(model, num_samples=4, seed=0)
    assert len({tuple(row) for row in z.reshape(4, -1).round(3).tolist()}) == 4
    for batch_size in (4, 3, 1):
        again, ids_again = latents(model, num_samples=4, seed=0, batch_size=batch_size)
        np.testing.assert_allclose(again, z, atol=1e-4)
        np.testing.assert_array_equal(ids_again, ids)
    # A later sample does not depend on how many there are.
    np.testing.assert_allclose(latents(model, num_samples=3, seed=0)[0], z[:3], atol=1e-4)
    assert np.abs(latents(model, num_samples=3, seed=1)[0] - z[:3]).max() > 0.1


def test_without_a_seed_calls_differ(model):
    one, other = (latents(model, num_samples=3)[0] for _ in range(2))
    assert np.abs(one - other).max() > 0.1


def test_a_text_does_not_depend_on_its_neighbours(model):
    alone, ids = latents(model, CONDITIONS[:1], seed=0)
    for neighbours in (CONDITIONS, [CONDITIONS[0], CONDITIONS[2], CONDITIONS[2]]):
        together, ids_together = latents(model, neighbours, seed=0)
        np.testing.assert_allclose(together[0], alone[0], atol=1e-4)
        np.testing.assert_array_equal(ids_together[0], ids[0])
    # It does depend on its condition.
    other = latents(model, CONDITIONS[1:2], seed=0)[0]
    assert np.abs(other - alone)[:, 6:].max() > 1e-2


def test_what_comes_back(model):
    as_str = model.generate(CONDITIONS[0], seed=0, verbose=False)
    assert isinstance(as_str, str)
    assert model.generate(CONDITIONS[:1], seed=0, verbose=False) == [as_str]
    texts = model.generate(CONDITIONS, seed=0, verbose=False)
    ids = model.generate(CONDITIONS, seed=0, verbose=False, return_token_ids=True)
    assert ids.shape == (3, small.LENGTH) and ids.dtype == np.int32
    assert model.preprocessor.generate_postprocess(ids) == texts
    # Ids in the place of text.
    tokens = [model.preprocessor.tokenizer.tokenize([text])[0] for text in CONDITIONS]
    assert model.generate(tokens, seed=0, verbose=False) == texts
    assert len(model.generate(seed=0, verbose=False)) == 1
    single = model.generate(num_samples=3, seed=0, verbose=False)
    assert len(single) == 3 and all(isinstance(text, str) for text in single)


@pytest.mark.skipif(small.BACKEND == "torch", reason="PyTorch traces nothing")
def test_settings_retrace_nothing(model):
    settings = dict(seed=0, verbose=False)
    model.generate(CONDITIONS, sampler=SDESampler(1.5), **settings)
    model.generate(num_samples=3, sampler=SDESampler(1.5), **settings)
    with small.recorded_forwards(model.backbone) as traced:
        for inputs in ({"inputs": CONDITIONS}, {"num_samples": 3}):
            model.generate(**inputs, guidance_scale=3.5, **settings)
            model.generate(**inputs, self_cond_guidance_scale=1.0, **settings)
            model.generate(**inputs, num_steps=5, **settings)
            model.generate(**inputs, use_averages=False, **settings)
        assert not traced
        # A setting of the sampler is part of its step.
        model.generate(num_samples=3, sampler=SDESampler(0.5), **settings)
        assert traced
        traced.clear()
        # The count can fail: another length is another program.
        model.generate(num_samples=3, length=small.LENGTH - 2, **settings)
        assert traced


def test_settings_change_the_result(model):
    base, _ = latents(model, CONDITIONS, seed=0)
    for change in (
        {"guidance_scale": 3.5},
        {"self_cond_guidance_scale": 1.0},
        {"num_steps": 5},
        {"sampler": SDESampler(0.0)},
        {"sampler": SDESampler(1.5, schedule="uniform")},
    ):
        assert np.abs(latents(model, CONDITIONS, seed=0, **change)[0] - base).max() > 1e-3, change
    # No fresh noise is the other sampler.
    without = latents(model, num_samples=3, seed=0, sampler=SDESampler(0.0))[0]
    ode = latents(model, num_samples=3, seed=0, sampler="ode")[0]
    np.testing.assert_allclose(without, ode, atol=1e-4)


def test_callback_sees_every_step(model):
    states = []
    model.generate(
        num_samples=4, num_steps=4, seed=0, batch_size=3, callback=states.append, verbose=False
    )
    assert [s.step for s in states] == 2 * [1, 2, 3, 4] and states[0].num_steps == 4
    for run in (states[:4], states[4:]):
        times = [s.t for s in run]
        assert times == sorted(times) and len(set(times)) == 4 and times[0] > 0
        assert times[-1] == 1.0
    assert tuple(states[0].z.shape) == tuple(states[0].x_pred.shape) == (3, 12, small.LATENT_DIM)
    assert list(states[0].samples) == [0, 1, 2] and states[4].samples[0] == 3


def test_noises_of_the_steps_differ(model, monkeypatch):
    noises = []
    original = samplers.SampleNoise.step

    def step(self, index, *args):
        noises.append((index, original(self, index, *args)))
        return noises[-1][1]

    monkeypatch.setattr(samplers.SampleNoise, "step", step)
    model.generate(num_samples=3, num_steps=4, seed=0, verbose=False)
    assert [index for index, _ in noises] == [-1, 0, 1, 2, 3]
    rows = np.concatenate([noise.reshape(3, -1) for _, noise in noises])
    assert np.abs(np.corrcoef(rows) - np.eye(len(rows))).max() < 0.5


def _count(on_ids, *args, **kwargs):
    with small.recorded_forwards(on_ids.backbone, mock=True) as calls:
        on_ids.generate(*args, num_steps=3, seed=0, verbose=False, **kwargs)
    return calls


def test_forward_passes(on_ids):
    """N + 1 for N steps, 2N + 1 with guidance on the condition."""
    rows = [c["z"].shape[0] for c in _count(on_ids, num_samples=2)]
    assert rows == [2, 2, 2, 2]
    conditions = [[5, 6], [7]]
    rows = [c["z"].shape[0] for c in _count(on_ids, conditions)]
    assert rows == [2, 2, 2, 2]
    rows = [c["z"].shape[0] for c in _count(on_ids, conditions, guidance_scale=2.0)]
    assert rows == [4, 4, 4, 2]


def test_decode_sees_t_one_and_no_self_condition(on_ids):
    calls = _count(on_ids, num_samples=2, self_cond_guidance_scale=2.5)

    def number(x):
        return np.array(ops.convert_to_numpy(x))

    *steps, decode = calls
    assert number(decode["t"]) == 1.0 and decode["decode"] == 1.0
    assert not number(decode["self_condition"]).any()
    assert number(decode["guidance_scale"]) == 2.5
    assert all(number(call["t"]) < 1.0 for call in steps)
    assert all(not np.any(call.get("decode", 0.0)) for call in steps)
    assert not number(steps[0]["self_condition"]).any()
    assert number(steps[1]["self_condition"]).any()


def test_ids_in_ids_out(on_ids):
    ids = on_ids.generate([[5, 6], [7]], seed=0, verbose=False)
    assert ids.shape == (2, small.LENGTH) and ids.dtype == np.int32
    # The condition is taken off, what it leaves free is padding.
    assert (ids[0, -2:] == 0).all() and ids[1, -1] == 0
    assert ids.min() >= 0 and ids.max() < small.VOCABULARY_SIZE
    assert on_ids.generate(seed=0, verbose=False).shape == (1, small.LENGTH)
    assert on_ids.generate(length=5, seed=0, verbose=False).shape == (1, 5)


def test_condition_positions_hold_the_condition(on_ids):
    states = []
    on_ids.generate([[5, 6], [7]], seed=0, verbose=False, callback=states.append)
    table = ops.convert_to_numpy(on_ids.encoder.token_embedding.embeddings) / 0.2
    for state in states:
        for x in (state.z, state.x_pred):
            x = ops.convert_to_numpy(x)
            np.testing.assert_allclose(x[0, :2], table[[5, 6]], atol=1e-5)
            np.testing.assert_allclose(x[1, 0], table[7], atol=1e-5)


def test_network_without_guidance_tokens():
    """Guidance on self-conditioning then costs a second pass, both guidances four in one."""
    made = small.generator("gaussian", preprocessor=None, network={"num_guidance_tokens": 0})
    made.compile(run_eagerly=True)
    counts = {}
    for w in (1.0, 3.0):
        for c in (1.0, 2.0):
            calls = _count(made, [[5, 6]], self_cond_guidance_scale=w, guidance_scale=c)
            counts[w, c] = [call["z"].shape[0] for call in calls]
            assert all(call["guidance_scale"] is None for call in calls)
    assert counts == {
        (1.0, 1.0): [1, 1, 1, 1],
        (1.0, 2.0): [2, 2, 2, 1],
        (3.0, 1.0): [2, 2, 2, 1],
        (3.0, 2.0): [4, 4, 4, 1],
    }


class Sample(keras.callbacks.Callback):
    """Writes text after each training step."""

    def __init__(self):
        super().__init__()
        self.z, self.averages = [], []

    def on_train_batch_end(self, batch, logs=None):
        z = latents(self.model, num_samples=3, seed=0, use_averages="always")
        self.z.append(z[0])
        self.averages.append(small.averages(self.model))


@pytest.fixture(scope="module")
def trained(model):
    """The conditional model through the same `fit` without and with a sampling callback."""
    model.compile(optimizer=AdamW(1e-2, ema_momentum=0.8))
    texts = small.texts(5 * small.BATCH)
    data = {"condition": [t[:8] for t in texts], "target": texts}
    model.optimizer.build(model.trainable_variables)
    states = [*model.variables, *model.optimizer.variables]
    snapshot = small.values(states)
    out = types.SimpleNamespace(ends=[], before=latents(model, num_samples=3, seed=0)[0])
    for callbacks in ([], [Sample()]):
        for variable, value in zip(states, snapshot, strict=True):
            variable.assign(value)
        history = model.fit(
            data, batch_size=small.BATCH, shuffle=False, verbose=0, callbacks=callbacks
        )
        out.ends.append((small.values(model.trainable_variables), small.averages(model)))
        out.history, out.callbacks = history.history, callbacks
    yield out
    for variable, value in zip(states, snapshot, strict=True):
        variable.assign(value)


def test_conditional_fit_with_label_drop(trained):
    assert all(np.isfinite(losses).all() for losses in trained.history.values())


def test_generating_inside_fit_leaves_training_alone(trained):
    (plain, plain_averages), (sampled, sampled_averages) = trained.ends
    assert small.error_between(plain, sampled) < 1e-5
    assert small.error_between(plain_averages, sampled_averages) < 1e-5
    assert small.error_between(sampled, sampled_averages) > 1e-3


def test_generating_inside_fit_sees_fresh_averages(trained, model):
    z = [trained.before, *trained.callbacks[0].z]
    assert len(z) == 6
    for earlier, later in zip(z, z[1:], strict=False):
        assert np.abs(earlier - later).max() > 1e-4
    # By hand: the averages of a step in the place of the weights.
    pairs = model.optimizer.average_pairs()
    raw = small.values([variable for variable, _ in pairs])
    for step in (0, 4):
        values = trained.callbacks[0].averages[step]
        for (variable, _), value in zip(pairs, values, strict=True):
            variable.assign(value)
        by_hand = latents(model, num_samples=3, seed=0, use_averages=False)[0]
        np.testing.assert_allclose(by_hand, z[1 + step], atol=1e-4)
    for (variable, _), value in zip(pairs, raw, strict=True):
        variable.assign(value)
    assert np.abs(latents(model, num_samples=3, seed=0, use_averages=False)[0] - z[-1]).max() > 1e-4


def test_default_sampler_and_steps_come_from_the_model(on_ids):
    other = ELFGenerator(
        on_ids.backbone,
        on_ids.encoder,
        sampler=ODESampler("uniform"),
        num_steps=2,
        sequence_length=small.LENGTH,
    )
    other.compile(run_eagerly=True)
    states = []
    other.generate(seed=0, verbose=False, callback=states.append)
    assert [s.t for s in states] == [0.5, 1.0]
