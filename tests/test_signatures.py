"""Every setting of every part tells compiled functions apart, and nothing else does."""

import inspect

import keras
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_elf import guidance, objectives, samplers
from keras_elf.configurable import signature
from keras_elf.guidance import ConditionGuidance
from keras_elf.objectives import ELFObjective
from keras_elf.samplers import SamplingConfig, SamplingEngine
from keras_elf.testing import DummyDenoiser

pytestmark = pytest.mark.backend_free


def eighths(low, high):
    """Few enough numbers that two draws are often equal."""
    return st.integers(low, high).map(lambda number: number / 8)


NUMBER, SHARE, POSITIVE = eighths(2, 12), eighths(0, 8), eighths(1, 8)
LOW, HIGH = eighths(0, 3), eighths(4, 8)


def maybe(values):
    return st.one_of(st.none(), values)


def one_of(*makers):
    """Fresh objects: what counts are their settings, and not which one it is."""
    return st.sampled_from(makers).map(lambda make: make())


GRID = {
    "schedule": st.sampled_from(["uniform", "logit_normal"]),
    "time_mean": NUMBER,
    "time_std": NUMBER,
}
RULE = {
    "scale": st.one_of(NUMBER, st.lists(NUMBER, min_size=1, max_size=3)),
    "interval": st.tuples(LOW, HIGH),
    "rescale": SHARE,
}
TIMES = one_of(
    objectives.UniformTimes, objectives.LogitNormalTimes, lambda: objectives.UniformTimes(0.5, 1.0)
)
PARTS = {
    samplers.ODESampler: GRID,
    samplers.HeunSampler: GRID,
    samplers.MultistepSampler: GRID,
    samplers.SDESampler: {
        **GRID,
        "gamma": NUMBER,
        "noise_scale": NUMBER,
        "final_gamma": maybe(NUMBER),
        "power": NUMBER,
    },
    guidance.ConditionGuidance: RULE,
    guidance.SelfConditioningGuidance: RULE,
    objectives.LogitNormalTimes: {"mean": NUMBER, "std": NUMBER},
    objectives.UniformTimes: {"minimum": LOW, "maximum": HIGH},
    objectives.MixtureTimes: {
        "samplers": st.lists(TIMES, min_size=2, max_size=2),
        "weights": st.lists(NUMBER, min_size=2, max_size=2),
    },
    objectives.LogUniformScales: {"minimum": POSITIVE, "maximum": HIGH},
    objectives.ConstantScale: {"scale": NUMBER},
    objectives.LogitNormalCorruption: {"mean": NUMBER, "std": NUMBER, "noise_scale": NUMBER},
    objectives.VelocityWeighting: {"min_time_gap": maybe(POSITIVE)},
    objectives.TimeBins: {"number": st.integers(1, 5)},
    ELFObjective: {
        "composition": one_of(
            lambda: "stratified", lambda: "per_step", lambda: "per_example", objectives.PerExample
        ),
        "decode_probability": SHARE,
        "self_conditioning_probability": SHARE,
        "prediction": st.sampled_from(["x", "v", "epsilon"]),
        "noise_scale": NUMBER,
        "decode_noise_scale": NUMBER,
        "time_mean": NUMBER,
        "time_std": NUMBER,
        "decode_mean": NUMBER,
        "decode_std": NUMBER,
        "min_guidance_scale": POSITIVE,
        "max_guidance_scale": HIGH,
        "min_time_gap": POSITIVE,
        "time_sampler": maybe(TIMES),
        "guidance_scale_sampler": maybe(
            one_of(objectives.ConstantScale, objectives.LogUniformScales)
        ),
        "decode_corruption": maybe(
            one_of(objectives.LogitNormalCorruption, lambda: objectives.LogitNormalCorruption(0.5))
        ),
        "weighting": maybe(one_of(objectives.UniformWeighting, objectives.VelocityWeighting)),
        "terms": st.lists(one_of(objectives.TimeBins, lambda: objectives.TimeBins(2)), max_size=2),
    },
}
REQUIRED = {objectives.MixtureTimes: {"samplers": [objectives.UniformTimes()] * 2}}
CASES = [(cls, name) for cls, parts in PARTS.items() for name in parts]


@pytest.mark.parametrize(("cls", "name"), CASES, ids=[f"{c.__name__}-{n}" for c, n in CASES])
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_a_setting_tells_two_parts_apart(cls, name, data):
    values = [data.draw(PARTS[cls][name]) for _ in range(2)]
    kept = REQUIRED.get(cls, {})
    one, other = (cls(**{**kept, name: value}) for value in values)
    assert (signature(one) == signature(other)) == (signature(values[0]) == signature(values[1]))
    copy = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(one))
    assert signature(copy) == signature(one)


def test_no_setting_is_left_out():
    modules = [(samplers, samplers.Sampler), (guidance, guidance.Guidance)]
    classes = []
    for module, base in (*modules, *((objectives, base) for base in BASES)):
        classes += [
            cls
            for cls in vars(module).values()
            if inspect.isclass(cls) and issubclass(cls, base) and cls is not base
        ]
    for cls in classes:
        made = cls(**REQUIRED.get(cls, {}))
        assert set(made.get_config()) == set(PARTS.get(cls, {})), cls
    everything = inspect.signature(ELFObjective.__init__).parameters
    assert set(everything) - {"self"} == set(PARTS[ELFObjective])


BASES = [
    objectives.TimeSampler,
    objectives.GuidanceScaleSampler,
    objectives.DecodeCorruption,
    objectives.Weighting,
    objectives.Term,
]

CONFIGS = st.tuples(
    st.sampled_from([c for c in PARTS if issubclass(c, samplers.Sampler)]).flatmap(
        lambda cls: st.fixed_dictionaries(PARTS[cls]).map(lambda values: (cls, values))
    ),
    st.fixed_dictionaries(RULE),
)


@settings(max_examples=60, deadline=None)
@given(CONFIGS, CONFIGS)
def test_two_configurations_share_a_step_only_where_all_settings_agree(one, other):
    engine = SamplingEngine(DummyDenoiser(3, 2, 2))

    def step(config):
        (cls, values), rule = config
        config = SamplingConfig(sampler=cls(**values), guidance=[ConditionGuidance(**rule)])
        return engine._step(config, (0,), False)

    def settings_of(config):
        (cls, values), rule = config
        # The strength is an argument of the step.
        return cls, values, {name: value for name, value in rule.items() if name != "scale"}

    assert (step(one) is step(other)) == (settings_of(one) == settings_of(other))
    assert step(one) is step(one)
