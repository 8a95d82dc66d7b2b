"""The loop: what it costs, what tells its compiled steps apart, what it leaves alone."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

from keras_elf.guidance import ConditionGuidance, SelfConditioningGuidance
from keras_elf.samplers import SampleNoise, SamplingConfig, SamplingEngine
from keras_elf.samplers.sampler import SAMPLERS
from tests.models.small import LATENT_DIM, LENGTH, backbone, enliven_backbone, recorded_forwards

GRID = np.linspace(0, 1, 5).astype("float32")
CONDITION = np.random.default_rng(0).standard_normal((2, LENGTH, LATENT_DIM)).astype("float32")
IS_COND = np.zeros((2, LENGTH), "bool")
IS_COND[:, :3] = True


def network(**overrides):
    keras.utils.set_random_seed(3)
    return enliven_backbone(backbone(**overrides))


def run(engine, config, conditional=True, seed=0, **options):
    given = (CONDITION, IS_COND) if conditional else (None, None)
    z = engine.run(config, range(2), LENGTH, SampleNoise(seed), GRID, *given, **options)
    return ops.convert_to_numpy(z)


RULES = {
    "none": [],
    "condition": [ConditionGuidance(2.0)],
    "both": [ConditionGuidance(2.0), SelfConditioningGuidance(3.0)],
    "interval": [ConditionGuidance(2.0, interval=(0.3, 0.6)), SelfConditioningGuidance(3.0)],
    "no strength": [ConditionGuidance(1.0), SelfConditioningGuidance(1.0)],
}


@pytest.mark.parametrize("takes_scale", [True, False])
def test_forwards_are_counted_exactly(takes_scale):
    """Rows that the network sees, for every sampler and guidance."""
    model = network(num_guidance_tokens=4 if takes_scale else 0)
    engine = SamplingEngine(model, eager=True)
    for name, rules, conditional in itertools.product(sorted(SAMPLERS), RULES, (True, False)):
        config = SamplingConfig(sampler=name, guidance=RULES[rules])
        with recorded_forwards(model, mock=True) as calls:
            z = engine.run(
                config,
                range(2),
                LENGTH,
                SampleNoise(0),
                GRID,
                *((CONDITION, IS_COND) if conditional else (None, None)),
            )
            engine.decode(config, z, range(2))
        rows = sum(call["z"].shape[0] for call in calls)
        assert rows == 2 * engine.evaluations(config, GRID, conditional), (name, rules)
    plain = SamplingConfig(sampler="ode", guidance=RULES["condition"])
    assert engine.evaluations(plain, GRID) == 5 and engine.evaluations(plain, GRID, True) == 9
    in_interval = SamplingConfig(sampler="ode", guidance=[RULES["interval"][0]])
    assert engine.evaluations(in_interval, GRID, True) == 4 + 1 + 1


def test_a_network_that_reads_the_scale_is_told_one_where_no_rule_tells_it():
    """Without a scale its tokens would be left out, which no training has seen."""
    engine = SamplingEngine(network(), eager=True)
    alone = run(engine, SamplingConfig(sampler="ode", guidance=[ConditionGuidance(2.0)]))
    both = SamplingConfig(sampler="ode", guidance_scale=2.0, self_cond_guidance_scale=1.0)
    np.testing.assert_array_equal(alone, run(engine, both))
    stronger = both.updated(self_cond_guidance_scale=3.0)
    assert np.abs(alone - run(engine, stronger)).max() > 1e-3


def test_condition_stays_where_it_is():
    states = []
    engine, config = SamplingEngine(network()), SamplingConfig(sampler="heun", guidance_scale=2.0)
    z = run(engine, config, callback=states.append)
    assert [s.step for s in states] == [1, 2, 3, 4] and states[0].num_steps == 4
    np.testing.assert_allclose([s.t for s in states], GRID[1:])
    for value in [z, *(s.z for s in states), *(s.x_pred for s in states)]:
        np.testing.assert_array_equal(ops.convert_to_numpy(value)[IS_COND], CONDITION[IS_COND])


def test_a_setting_of_ones_own_is_never_ignored():
    class Damped(SAMPLERS["ode"]):
        def __init__(self, damping):
            super().__init__()
            self.damping = damping

        def step(self, denoise, state, t, t_next, noise=None):
            predicted = denoise(state["z"], state["x_pred"], t)
            z = state["z"] + self.damping * (t_next - t) * predicted.velocity
            return {"z": z, "x_pred": predicted.clean}

    engine = SamplingEngine(network())
    full, half = (run(engine, SamplingConfig(sampler=Damped(d)), False) for d in (1.0, 0.5))
    assert np.abs(full - half).max() > 0.1
    changed = Damped(1.0)
    np.testing.assert_array_equal(run(engine, SamplingConfig(sampler=changed), False), full)
    changed.damping = 0.5
    np.testing.assert_array_equal(run(engine, SamplingConfig(sampler=changed), False), half)


def test_strength_is_an_argument_of_one_step():
    engine = SamplingEngine(network())
    made = engine._functions
    outputs = []
    for scale in (1.5, 3.0, 3.0):
        config = SamplingConfig(sampler="ode", guidance_scale=scale, self_cond_guidance_scale=scale)
        outputs.append(run(engine, config))
        assert len(made._functions) == 1
    assert np.abs(outputs[0] - outputs[1]).max() > 1e-3
    np.testing.assert_array_equal(outputs[1], outputs[2])


def test_scales_a_row_equal_rows_alone():
    engine = SamplingEngine(network())
    scales = [1.5, 4.0]
    together = run(
        engine,
        SamplingConfig(sampler="ode", guidance_scale=scales, self_cond_guidance_scale=scales[::-1]),
    )
    for row, (c, w) in enumerate(zip(scales, scales[::-1], strict=True)):
        alone = run(
            engine, SamplingConfig(sampler="ode", guidance_scale=c, self_cond_guidance_scale=w)
        )
        np.testing.assert_allclose(together[row], alone[row], rtol=1e-4, atol=1e-4)


def test_given_values_stand_in_for_the_weights():
    """As two threads need it: nothing of the network changes."""
    model = network()
    engine, config = SamplingEngine(model), SamplingConfig(sampler="ode")
    before = run(engine, config, False)
    values = [1.01 * ops.convert_to_tensor(v) for v in model.variables]
    other = run(engine, config, False, values=values)
    assert np.abs(other - before).max() > 1e-3
    np.testing.assert_array_equal(run(engine, config, False), before)
    for variable, value in zip(model.variables, values, strict=True):
        variable.assign(value)
    np.testing.assert_allclose(run(engine, config, False), other, rtol=1e-5, atol=1e-5)


def test_what_a_compiled_step_was_made_from_may_change_later():
    """Also inside of a list that the sampler holds."""

    class Weighted(SAMPLERS["ode"]):
        def __init__(self, weights):
            super().__init__()
            self.weights = weights

        def step(self, denoise, state, t, t_next, noise=None):
            predicted = denoise(state["z"], state["x_pred"], t)
            z = state["z"] + self.weights[0] * (t_next - t) * predicted.velocity
            return {"z": z, "x_pred": predicted.clean}

    engine, weights = SamplingEngine(network()), [1.0]
    changed = Weighted(weights)
    first = run(engine, SamplingConfig(sampler=changed), False)
    weights[0] = 0.5
    assert np.abs(run(engine, SamplingConfig(sampler=changed), False) - first).max() > 0.1
    np.testing.assert_array_equal(
        run(engine, SamplingConfig(sampler=Weighted([1.0])), False), first
    )


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda state: None, "must return the state.*Received: NoneType"),
        (lambda state: {"z": state["z"]}, r"'z' and 'x_pred'. Received: \['z'\]"),
        (lambda state: {**state, "z": state["z"][:1]}, r"shape of 'z', \(2, 12, 16\).*\(1, 12"),
        (lambda state: {**state, "more": state["z"]}, "with the entries"),
    ],
)
def test_a_sampler_that_returns_no_state_is_named(broken, message):
    class Broken(SAMPLERS["ode"]):
        def step(self, denoise, state, t, t_next, noise=None):
            return broken(super().step(denoise, state, t, t_next, noise))

    engine = SamplingEngine(network(), eager=True)
    with pytest.raises(ValueError, match="`step` of the sampler Broken .*" + message):
        run(engine, SamplingConfig(sampler=Broken()), False)


def test_fresh_noise_has_the_scale_of_training():
    """A model trained with other noise is sampled with it, unless the sampler says otherwise."""
    model = network()
    of_training = SamplingEngine(model, noise_scale=0.5, eager=True)
    ours, given, other = (
        run(of_training, SamplingConfig(sampler=SAMPLERS["sde"](2.0, noise_scale=scale)))
        for scale in (None, 0.5, 2.0)
    )
    np.testing.assert_array_equal(ours, given)
    assert np.abs(ours - other).max() > 1e-3
    assert SAMPLERS["sde"](2.0).noise_scale is None
