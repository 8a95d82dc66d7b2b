"""Every part of the library passes the checks that users have for theirs."""

import keras
import pytest

from keras_elf import encoders, guidance, layers, objectives, samplers, testing
from keras_elf.samplers import sampler
from tests.layers.test_context_signals import LengthSignal
from tests.objectives.test_report import ReadingObjective, SizePenalty, TokenAccuracy

# Without compiling, JAX takes long for each of them: one of a kind runs there.
SLOW = {
    "dummy",
    "backbone",
    "backbone, dropout",
    "backbone, no guidance tokens",
    "transformer, to be trained",
    "t5",
    "per_example",
    "per_step",
}


def cases(names):
    marks = {True: [pytest.mark.slow], False: []}
    return [pytest.param(name, marks=marks[name in SLOW]) for name in names]


def labelled():
    context = [layers.TimeSignal(2), layers.ScaleSignal(1), layers.ModeSignal(1)]
    return testing.dummy_backbone(context_signals=[*context, layers.LabelSignal(3, num_tokens=2)])


DENOISERS = {
    "dummy": testing.DummyDenoiser,
    "dummy, all values": lambda: testing.DummyDenoiser(9, 4, 8, True, num_classes=3),
    "backbone": testing.dummy_backbone,
    "backbone, dropout": lambda: testing.dummy_backbone(
        depth=4, dropout=0.3, attention_dropout=0.3
    ),
    "backbone, no guidance tokens": lambda: testing.dummy_backbone(num_guidance_tokens=0),
    "backbone, labels": labelled,
}


@pytest.mark.parametrize("name", cases(DENOISERS))
def test_denoiser(name):
    keras.utils.set_random_seed(0)
    network = DENOISERS[name]()
    before = [keras.ops.convert_to_numpy(v).copy() for v in network.weights]
    testing.check_denoiser(network)
    after = [keras.ops.convert_to_numpy(v) for v in network.weights]
    assert all((a == b).all() for a, b in zip(before, after, strict=True))


SAMPLERS = {
    **sampler.SAMPLERS,
    "sde, falling": lambda: samplers.SDESampler(1.5, final_gamma=0.5, power=2.0),
    "sde, back to the start": lambda: samplers.SDESampler(100.0),
    "ode, even": lambda: samplers.ODESampler("uniform"),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_sampler(name):
    testing.check_sampler(SAMPLERS[name]())


RULES = [
    guidance.ConditionGuidance(2.0),
    guidance.ConditionGuidance([1.0, 2.0], rescale=0.5),
    guidance.SelfConditioningGuidance(3.0, interval=(0.2, 0.8)),
]


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_guidance(rule):
    testing.check_guidance(rule)


ENCODERS = {
    "transformer": testing.dummy_encoder,
    "transformer, to be trained": lambda: encoders.TransformerEncoder(9, 8, 1, num_heads=2),
    "learned": lambda: encoders.LearnedTable(9, 4),
    "gaussian": lambda: encoders.GaussianTable(9, 4, stddev=0.5, seed=3),
    "t5": lambda: encoders.T5Encoder(
        vocabulary_size=11, num_layers=2, num_heads=2, latent_dim=8, intermediate_dim=12
    ),
}


@pytest.mark.parametrize("name", cases(ENCODERS))
def test_encoder(name):
    testing.check_encoder(ENCODERS[name]())


OBJECTIVES = {
    **{name: objectives.ELFObjective(name) for name in objectives.COMPOSITIONS},
    "terms": objectives.ELFObjective(
        terms=[objectives.TimeBins(3), TokenAccuracy(), SizePenalty()]
    ),
    "other parts": objectives.ELFObjective(
        prediction="v",
        noise_scale=1.0,
        min_time_gap=0.1,
        time_sampler=objectives.MixtureTimes(
            [objectives.UniformTimes(0.5, 1.0), objectives.LogitNormalTimes()]
        ),
        guidance_scale_sampler=objectives.ConstantScale(2.0),
        weighting=objectives.UniformWeighting(),
    ),
    "of a user": ReadingObjective(0.3),
}


@pytest.mark.parametrize("name", cases(OBJECTIVES))
def test_objective(name):
    testing.check_objective(OBJECTIVES[name])


SIGNALS = {
    "time": lambda: layers.TimeSignal(2),
    "scale": lambda: layers.ScaleSignal(2, hidden_size=6),
    "mode": lambda: layers.ModeSignal(1),
    "label": lambda: layers.LabelSignal(3),
    "topic": lambda: layers.LabelSignal(1, key="topic"),
    "number": lambda: layers.NumberSignal(2, key="pace", empty=-1.0),
    "of a user": lambda: LengthSignal(3),
}


@pytest.mark.parametrize("name", SIGNALS)
def test_signal(name):
    signal = SIGNALS[name]()
    testing.check_signal(signal)
    layers.ContextPrefix(6, signals=[signal])  # It is still free.
