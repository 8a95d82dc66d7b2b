"""Argument checks: what passes, what is refused, and what the message says."""

import fractions
import re

import numpy as np
import pytest

from keras_elf import checks

pytestmark = pytest.mark.backend_free


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_whole_numbers_pass_as_int(value):
    out = checks.integer("steps", value, minimum=3, maximum=3)
    assert out == 3 and type(out) is int


@pytest.mark.parametrize("value", [3.0, "3", None, True, np.bool_(True), np.float32(3), [3], 1j])
def test_what_is_no_whole_number(value):
    with pytest.raises(
        ValueError, match=re.escape(f"`steps` must be a whole number. Received: {value!r}")
    ):
        checks.integer("steps", value)


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), fractions.Fraction(1, 2)])
def test_numbers_pass_as_float(value):
    out = checks.number("rate", value, minimum=0.5, maximum=0.5)
    assert out == 0.5 and type(out) is float


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), -np.inf, np.float32("nan"), "1", None, False, 1j, [1.0]]
)
def test_what_is_no_finite_number(value):
    with pytest.raises(
        ValueError, match=re.escape(f"`rate` must be a finite number. Received: {value!r}")
    ):
        checks.number("rate", value)


@pytest.mark.parametrize(
    ("limits", "value", "message"),
    [
        ({"minimum": 1}, 0, "a whole number >= 1. Received: 0"),
        ({"maximum": 4}, 5, "a whole number <= 4. Received: 5"),
        ({"minimum": 1, "maximum": 4}, 5, "a whole number in [1, 4]. Received: 5"),
        ({"minimum": 1, "maximum": 4}, "x", "a whole number in [1, 4]. Received: 'x'"),
    ],
)
def test_the_message_states_the_range(limits, value, message):
    with pytest.raises(ValueError, match=re.escape(f"`steps` must be {message}")):
        checks.integer("steps", value, **limits)
    if not isinstance(value, str):
        message = message.replace("whole", "finite")
        with pytest.raises(ValueError, match=re.escape(message)):
            checks.number("steps", value, **limits)


@pytest.mark.parametrize("value", [0, 1, 0.3])
def test_probabilities(value):
    assert checks.probability("p", value) == value


@pytest.mark.parametrize("value", [-1e-9, 1.0001, float("nan"), True, "0.5"])
def test_what_is_no_probability(value):
    with pytest.raises(ValueError, match=r"`p` must be a finite number in \[0, 1\]"):
        checks.probability("p", value)


def test_choice():
    assert checks.choice("mode", "ode", {"ode": 1, "sde": 2}) == "ode"
    assert checks.choice("mode", None, (None, "ode")) is None
    expected = "`mode` must be one of ['ode', 'sde']. Received: 'oed'. Did you mean 'ode'?"
    with pytest.raises(ValueError, match=re.escape(expected)):
        checks.choice("mode", "oed", ("ode", "sde"))
    with pytest.raises(ValueError, match=r"Received: 'zzz'\.$"):
        checks.choice("mode", "zzz", ("ode", "sde"))
    with pytest.raises(ValueError, match=r"Received: \[1\]\.$"):
        checks.choice("mode", [1], ("ode", "sde"))


def test_unknown_arguments():
    checks.no_unknown("Owner", {})
    checks.no_unknown("Owner", {"name": 1}, ("name", "dtype"))
    expected = "Owner got unknown arguments ['a', 'b']. Allowed besides: ['dtype', 'name']"
    with pytest.raises(TypeError, match=re.escape(expected)):
        checks.no_unknown("Owner", {"b": 1, "a": 1, "name": 1}, ("name", "dtype"))
