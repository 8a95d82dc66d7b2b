"""The checks can fail: each finds what it is there for, and says so."""

import keras
import pytest

from keras_elf import layers, testing
from tests.testing import broken


def cases(parts):
    return pytest.mark.parametrize(
        ("message", "make"), parts.items(), ids=[cls.__name__ for cls in parts.values()]
    )


@cases(broken.DENOISERS)
def test_denoiser(message, make):
    with pytest.raises((AssertionError, ValueError), match=message):
        testing.check_denoiser(make())


@cases(broken.SAMPLERS)
def test_sampler(message, make):
    with pytest.raises(AssertionError, match=message):
        testing.check_sampler(make())


@cases(broken.RULES)
def test_guidance(message, make):
    with pytest.raises(AssertionError, match=message):
        testing.check_guidance(make(2.0))


@cases(broken.ENCODERS)
def test_encoder(message, make):
    with pytest.raises(AssertionError, match=message):
        testing.check_encoder(make())


@cases(broken.OBJECTIVES)
def test_objective(message, make):
    with pytest.raises((AssertionError, ValueError), match=message):
        testing.check_objective(make())


@cases(broken.SIGNALS)
def test_signal(message, make):
    with pytest.raises(AssertionError, match=message):
        testing.check_signal(make())


CHECKS = {
    testing.check_denoiser: "The network must be a keras.Layer",
    testing.check_sampler: "`sampler` must be|must be one of",
    testing.check_guidance: "`rule` must be a keras_elf.guidance.Guidance. Received: 'elf'",
    testing.check_encoder: "`encoder` must be a keras_elf.encoders.TextEncoder",
    testing.check_objective: "`objective` must be an ELFObjective",
    testing.check_signal: "`signal` must be a keras_elf.layers.ContextSignal",
}


@pytest.mark.parametrize("check", CHECKS)
def test_what_is_no_such_part_is_refused(check):
    with pytest.raises(ValueError, match=CHECKS[check]):
        check("elf")


def test_a_class_that_is_not_registered_is_told():
    class Unregistered(layers.TimeSignal):
        pass

    with pytest.raises(AssertionError, match="Unregistered is not registered.*Decorate it"):
        testing.check_signal(Unregistered(1))


def test_flags_leave_out_what_is_meant():
    testing.check_sampler(broken.Damped(), ends_at_data=False)
    testing.check_guidance(broken.Shifted(2.0), extrapolates=False)


def test_values_name_what_must_be_told_apart():
    @broken.registered
    class Coarse(layers.NumberSignal):
        def call(self, value):
            return super().call(keras.ops.floor(value))

    signal = Coarse(2, key="coarse")
    with pytest.raises(AssertionError, match="`values=` names two others"):
        testing.check_signal(signal)
    testing.check_signal(signal, values=[1, 2])
