"""Guidance: what is asked of the network, in one call, and how the answers are combined."""

import numpy as np
import pytest
from keras import ops

from keras_elf import flow
from keras_elf.guidance import (
    ConditionGuidance,
    DenoiserInputs,
    Guidance,
    SelfConditioningGuidance,
    guided_prediction,
)
from keras_elf.testing.walking import DATA, ROWS, SHAPE

CONDITION = 10.0 + DATA
IS_COND = np.array([[True, False, False], [True, True, False]])

Z, SELF = np.random.default_rng(1).standard_normal((2, ROWS, *SHAPE)).astype("float32")
T, C, W = np.float32(0.3), np.float32(2.0), np.float32(3.0)
Z[IS_COND] = SELF[IS_COND] = CONDITION[IS_COND]
CLEARED = np.where(IS_COND[..., None], 0, Z), np.where(IS_COND[..., None], 0, SELF)
PINNED = np.where(IS_COND[..., None], CONDITION, 0).astype("float32")
ZEROS = np.zeros_like(Z)


def network(z, self_condition, t):
    """Nonlinear in both inputs, and each position sees its whole row."""
    return 0.3 * z + 0.5 * self_condition**2 + 0.1 * (z + self_condition).sum(1, keepdims=True) + t


class Network:
    """`network` on tensors; remembers what it was called with."""

    def __init__(self):
        self.batches = []

    def __call__(self, asked, t):
        z, self_condition = map(ops.convert_to_numpy, (asked.z, asked.self_condition))
        self.batches.append(len(z))
        return ops.convert_to_tensor(network(z, self_condition, T).astype("float32"))


def predicted(rules=(), conditional=True, t=T):
    """`(Prediction, sizes of the batches the network saw)`."""
    condition, is_cond = (CONDITION, IS_COND) if conditional else (None, None)
    predict = Network()
    z, self_condition = ops.convert_to_tensor(Z), ops.convert_to_tensor(SELF)
    if conditional:
        condition, is_cond = ops.convert_to_tensor(CONDITION), ops.convert_to_tensor(IS_COND)
    inputs = DenoiserInputs(z, self_condition, condition, is_cond)
    given = [(rule, rule.rows(range(ROWS))) for rule in rules]
    t = ops.convert_to_tensor(t, "float32")
    return guided_prediction(predict, inputs, t, given), predict.batches


def guided(c=None, w=None, conditional=True):
    rules = [] if c is None else [ConditionGuidance(float(c))]
    rules += [] if w is None else [SelfConditioningGuidance(float(w))]
    prediction, batches = predicted(rules, conditional)
    return ops.convert_to_numpy(prediction.clean), batches


def pinned(x):
    return np.where(IS_COND[..., None], CONDITION, x)


def self_guided(z, self_condition, without):
    u = network(z, without, T)
    return u + W * (network(z, self_condition, T) - u)


CASES = {
    "none": ({}, 1, pinned(network(Z, SELF, T))),
    "condition": (
        {"c": C},
        2,
        pinned(network(*CLEARED, T) + C * (network(Z, SELF, T) - network(*CLEARED, T))),
    ),
    "self-condition": ({"w": W}, 2, pinned(self_guided(Z, SELF, PINNED))),
    "both": (
        {"c": C, "w": W},
        4,
        pinned(
            self_guided(*CLEARED, ZEROS)
            + C * (self_guided(Z, SELF, PINNED) - self_guided(*CLEARED, ZEROS))
        ),
    ),
    "unconditional": ({"conditional": False}, 1, network(Z, SELF, T)),
    "unconditional, self-condition": (
        {"w": W, "conditional": False},
        2,
        self_guided(Z, SELF, ZEROS),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_one_call_and_the_formula(case):
    arguments, parts, expected = CASES[case]
    out, batches = guided(**arguments)
    assert batches == [parts * ROWS]
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


def test_too_few_scales_are_told():
    with pytest.raises(ValueError, match="`scale` has 1 numbers.*more rows: 2"):
        ConditionGuidance([2.0]).rows(range(2))


def test_guiding_clean_latents_is_guiding_velocities():
    """The published rule combines velocities; both predictions share z and t."""
    out, _ = guided(c=C)
    u, g = (flow.velocity(network(*x, T), Z, T) for x in (CLEARED, (Z, SELF)))
    expected = ops.convert_to_numpy(u + C * (g - u))
    free = ~IS_COND
    velocity = ops.convert_to_numpy(flow.velocity(out, Z, T))
    np.testing.assert_allclose(velocity[free], expected[free], rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(velocity[IS_COND], 0)


@pytest.mark.parametrize(("t", "acts"), [(0.2, False), (0.25, True), (0.5, True), (0.6, False)])
def test_guidance_in_an_interval(t, acts):
    rule = ConditionGuidance(3.0, interval=(0.25, 0.5))
    assert rule.acts(t, t) is acts
    out = ops.convert_to_numpy(predicted([rule], t=t)[0].clean)
    expected = guided(c=3.0 if acts else 1.0)[0]
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


def test_rescaling_gives_the_spread_of_the_prediction_without_guidance():
    free = ~IS_COND
    plain = predicted()[0].clean
    spreads = []
    for rescale in (0.0, 0.5, 1.0):
        out = predicted([ConditionGuidance(4.0, rescale=rescale)])[0].clean
        spreads.append([ops.convert_to_numpy(out)[row][free[row]].std() for row in range(ROWS)])
    wanted = [ops.convert_to_numpy(plain)[row][free[row]].std() for row in range(ROWS)]
    np.testing.assert_allclose(spreads[2], wanted, rtol=1e-4)
    assert (np.array(spreads[0]) > spreads[1]).all() and (np.array(spreads[1]) > wanted).all()


def test_unguided_predictions_are_offered():
    prediction, _ = predicted([ConditionGuidance(2.0), SelfConditioningGuidance(3.0)])
    np.testing.assert_allclose(
        ops.convert_to_numpy(prediction.unguided), network(Z, SELF, T), rtol=1e-4, atol=1e-4
    )
    for found, asked in zip(
        prediction.without, ((*CLEARED,), (Z, PINNED), (CLEARED[0], ZEROS)), strict=True
    ):
        expected = network(*asked, T)
        np.testing.assert_allclose(ops.convert_to_numpy(found), expected, rtol=1e-4, atol=1e-4)


def test_signals_are_emptied_with_the_condition():
    seen = []

    def predict(asked, t):
        seen.append(ops.convert_to_numpy(asked.signals["label"]))
        return asked.z

    labels = ops.convert_to_tensor(np.array([1, 2], "int32"))
    inputs = DenoiserInputs(
        *map(ops.convert_to_tensor, (Z, SELF)),
        signals={"label": labels},
        empty_signals={"label": 9},
    )
    rule = ConditionGuidance(2.0)
    assert rule.needs_prediction(None, inputs)
    guided_prediction(predict, inputs, ops.ones(()), [(rule, rule.rows(range(2)))])
    np.testing.assert_array_equal(seen[0], [1, 2, 9, 9])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scale": float("nan")}, "`scale`.*nan"),
        ({"scale": 1e6}, "`scale`.*10000.*1000000"),
        ({"scale": []}, r"`scale`.*one a row.*\[\]"),
        ({"scale": [[1.0]]}, "`scale`.*one a row"),
        ({"scale": "3"}, "`scale`.*'3'"),
        ({"interval": (0.5, 0.2)}, "`interval`.*low <= high"),
        ({"interval": (0.5, 1.2)}, "`interval`.*1.2"),
        ({"interval": 0.5}, "`interval`.*0.5"),
        ({"rescale": 2}, "`rescale`.*2"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ConditionGuidance(**arguments)


def test_a_rule_of_ones_own():
    class HalfSelf(Guidance):
        def without(self, inputs):
            return inputs._replace(self_condition=0.5 * inputs.self_condition)

    out, batches = predicted([HalfSelf(3.0)], conditional=False)
    u = network(Z, 0.5 * SELF, T)
    expected = u + 3.0 * (network(Z, SELF, T) - u)
    np.testing.assert_allclose(ops.convert_to_numpy(out.clean), expected, rtol=1e-4, atol=1e-4)
    assert batches == [2 * ROWS]


class Narrow(SelfConditioningGuidance):
    def combine(self, guided, unguided, scale):
        return guided[..., :1]


class Forgetful(SelfConditioningGuidance):
    def without(self, inputs):
        return None


@pytest.mark.parametrize(
    ("rule", "message"),
    [(Narrow(2.0), "`combine` of the guidance Narrow"), (Forgetful(2.0), "`without` of the guid")],
)
def test_rules_that_return_something_else_are_named(rule, message):
    z = ops.zeros((2, 3, 4))
    inputs = DenoiserInputs(z, z, None, None, {}, {})
    with pytest.raises(ValueError, match=message):
        guided_prediction(lambda given, t: given.z, inputs, ops.zeros(()), [(rule, ops.ones(()))])
