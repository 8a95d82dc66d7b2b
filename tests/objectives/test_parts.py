"""Parts of the objective: what they draw, their short form, saving, and parts of one's own."""

import json

import keras
import numpy as np
import pytest
from keras import ops

from keras_elf import flow, objectives
from keras_elf.configurable import signature
from keras_elf.objectives import ELFObjective, losses, passes

# As version 0.1 saved it.
OLD = json.loads(
    '{"module": "keras_elf.objectives.elf_objective", "class_name": "ELFObjective", "config": '
    '{"composition": "per_step", "decode_probability": 0.3, "self_conditioning_probability": 0.5, '
    '"prediction": "v", "noise_scale": 1.5, "decode_noise_scale": 1.0, "time_mean": -1.0, '
    '"time_std": 0.5, "decode_mean": 0.4, "decode_std": 0.6, "min_guidance_scale": 1.0, '
    '"max_guidance_scale": 3.0, "min_time_gap": 0.1}, "registered_name": "keras_elf>ELFObjective"}'
)
SHAPE = (64, 3, 2)


def array(x):
    return ops.convert_to_numpy(x)


def draws_of(objective, seed=4):
    return keras.tree.map_structure(array, objective.draw(SHAPE, keras.random.SeedGenerator(seed)))


def same(one, other):
    return all(
        np.array_equal(a, b)
        for a, b in zip(keras.tree.flatten(one), keras.tree.flatten(other), strict=True)
    )


@keras.saving.register_keras_serializable(package="keras_elf_tests")
class EarlyTimes(objectives.TimeSampler):
    def __init__(self, power=2):
        self.power = power

    def times(self, draws):
        return draws**self.power


@keras.saving.register_keras_serializable(package="keras_elf_tests")
class LateWeighting(objectives.Weighting):
    def weight(self, t):
        return t**2


def test_an_old_config_is_the_same_objective():
    old = keras.saving.deserialize_keras_object(OLD)
    parts = ELFObjective(
        objectives.PerStep(),
        decode_probability=0.3,
        prediction="v",
        noise_scale=1.5,
        min_time_gap=0.1,
        time_sampler=objectives.LogitNormalTimes(-1, 0.5),
        guidance_scale_sampler=objectives.LogUniformScales(1, 3),
        decode_corruption=objectives.LogitNormalCorruption(0.4, 0.6, 1.0),
        weighting=objectives.VelocityWeighting(),
    )
    assert same(draws_of(old), draws_of(parts))
    assert not same(draws_of(old), draws_of(ELFObjective("per_step")))
    # It saves as it did, so that older versions can read it as well.
    assert keras.saving.serialize_keras_object(old) == OLD


def test_draws_are_those_of_the_published_formulas():
    """The order of the draws as well: a seed gives the run that it gave before."""
    seeds = keras.random.SeedGenerator(4)
    normal, uniform = keras.random.normal, keras.random.uniform
    noise, branch = normal(SHAPE, seed=seeds), uniform((64,), seed=seeds)
    want = {
        "noise": noise,
        "decode_noise": noise,
        "is_decode": branch < 0.2,
        "t": flow.logit_normal(normal((64,), seed=seeds), -1.5, 0.8),
        "decode_mix": flow.logit_normal(normal((64, 3), seed=seeds), 0.8, 0.8),
        "guidance_scale": flow.guidance_scale(uniform((64,), seed=seeds), 0.5, 5.0),
        "use_self_condition": uniform((64,), seed=seeds) < 0.5,
        "order": uniform((64,), seed=seeds),
    }
    found = draws_of(ELFObjective())
    assert set(found) == set(want)
    for name, value in want.items():
        np.testing.assert_array_equal(found[name], array(value), err_msg=name)


def test_parts_take_the_place_of_the_published_ones():
    mixture = objectives.MixtureTimes(
        [objectives.UniformTimes(0.9, 1.0), EarlyTimes(8), objectives.LogitNormalTimes(0, 0.0)],
        weights=[2, 1, 1],
    )
    objective = ELFObjective(
        time_sampler=mixture, guidance_scale_sampler=objectives.ConstantScale(2.5)
    )
    draws = draws_of(objective)
    t = draws["t"]
    assert (draws["guidance_scale"] == 2.5).all()
    halves = np.isclose(t, 0.5)
    assert 0.3 < (t >= 0.9).mean() < 0.7 and 0.1 < halves.mean() < 0.45
    rest = t[~halves & (t < 0.9)]
    assert len(rest) > 5 and np.median(rest) < 0.2
    uniform = draws_of(ELFObjective(time_sampler=objectives.UniformTimes()))["t"]
    assert abs(uniform.mean() - 0.5) < 0.15 and uniform.min() < 0.1 and uniform.max() > 0.9


def error(weighting, t, min_time_gap=0.05):
    """`(weighted error, error of the velocity, error of clean latents)` of random rows."""
    rng = np.random.default_rng(0)
    x_pred, clean, z = rng.standard_normal((3, len(t), 5, 4)).astype("float32")
    t = ops.convert_to_tensor(np.float32(t))
    objective = ELFObjective(weighting=weighting, min_time_gap=min_time_gap)
    target = flow.velocity(clean, z, t, min_time_gap)
    x_pred, z = ops.convert_to_tensor(x_pred), ops.convert_to_tensor(z)
    found = array(passes.denoising_error(objective, x_pred, target, z, t))
    plain = losses.velocity_error(flow.velocity(x_pred, z, t, min_time_gap), target)
    return found, array(plain), ((array(x_pred) - clean) ** 2).mean(-1)


TIMES = [0.0, 0.2, 0.5, 0.9, 0.97, 1.0]


def test_the_default_weighting_is_the_velocity_error_to_the_bit():
    found, plain, squared = error(None, TIMES)
    np.testing.assert_array_equal(found, plain)
    weight = objectives.VelocityWeighting(0.05).weight(np.float32(TIMES))
    np.testing.assert_allclose(found, squared * array(weight)[:, None], rtol=1e-4)


@pytest.mark.parametrize(
    "weighting, weight",
    [
        (objectives.UniformWeighting(), lambda t: np.ones_like(t)),
        (LateWeighting(), lambda t: t**2),
        (objectives.VelocityWeighting(0.2), lambda t: 1 / np.maximum(1 - t, 0.2) ** 2),
    ],
)
def test_weightings(weighting, weight):
    found, _, squared = error(weighting, TIMES)
    np.testing.assert_allclose(found, squared * weight(np.float32(TIMES))[:, None], rtol=1e-4)


def test_parts_are_saved_along():
    objective = ELFObjective(
        objectives.PerExample(),
        decode_probability=0.4,
        time_sampler=objectives.MixtureTimes([EarlyTimes(3), objectives.UniformTimes(0, 0.5)]),
        guidance_scale_sampler=objectives.ConstantScale(2.0),
        decode_corruption=objectives.LogitNormalCorruption(noise_scale=3.0),
        weighting=LateWeighting(),
        terms=[objectives.TimeBins(4)],
    )
    saved = json.loads(json.dumps(keras.saving.serialize_keras_object(objective)))
    again = keras.saving.deserialize_keras_object(saved)
    assert same(draws_of(objective), draws_of(again))
    assert isinstance(again.weighting, LateWeighting)
    assert again.decode_corruption.noise_scale == 3.0
    assert again.report_names == objective.report_names
    assert type(again.composition) is objectives.PerExample
    assert keras.saving.serialize_keras_object(again) == keras.saving.serialize_keras_object(
        objective
    )
    assert signature(ELFObjective(terms=[objectives.TimeBins(4)])) != signature(ELFObjective())


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ELFObjective(time_sampler="uniform"), "`time_sampler` must be a TimeSampler"),
        (lambda: ELFObjective(weighting=lambda t: t), "`weighting` must be a Weighting"),
        (
            lambda: ELFObjective(time_mean=0, time_sampler=objectives.UniformTimes()),
            "`time_mean` says nothing beside `time_sampler`",
        ),
        (lambda: ELFObjective(terms=[3]), "`terms` must be a list of Term"),
        (lambda: ELFObjective(composition=3), "`composition` must be one of"),
        (lambda: objectives.MixtureTimes([]), "`samplers` must be a list of TimeSampler"),
        (
            lambda: objectives.MixtureTimes([objectives.UniformTimes()], [1, 2]),
            "`weights` must hold a weight for each",
        ),
        (lambda: objectives.UniformTimes(0.5, 0.2), "`maximum` must be .*0.5"),
        (lambda: objectives.ConstantScale(0), "`scale` must be"),
        (lambda: objectives.TimeBins(0), "`number` must be"),
    ],
)
def test_refused_parts(make, message):
    with pytest.raises(ValueError, match=message):
        make()


class Late(objectives.TimeSampler):
    def times(self, draws):
        return draws + 0.5


class One(objectives.Weighting):
    def weight(self, t):
        return t[:1]


class Negative(objectives.Weighting):
    def weight(self, t):
        return -t


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"time_sampler": Late()}, "`times` of Late must return times in .0, 1., one a row"),
        ({"weighting": One()}, r"`weight` of One .* Received: shape \(1,\)"),
        ({"weighting": Negative()}, "`weight` of Negative .* numbers from -0.95"),
    ],
)
def test_parts_that_give_other_numbers_are_refused(parts, message):
    with pytest.raises(ValueError, match=message):
        ELFObjective(**parts)
