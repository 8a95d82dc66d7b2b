"""What a guidance rule must do for the samplers that apply it."""

import numpy as np
from keras import ops

from keras_elf.guidance import DenoiserInputs, Guidance, guided_prediction
from keras_elf.samplers import SampleNoise, SamplingConfig, SamplingEngine
from keras_elf.testing.conformance import common
from keras_elf.testing.conformance.common import expect, expect_equal
from keras_elf.testing.dummy_denoiser import DummyDenoiser

ROWS, LENGTH, WIDTH = 2, 4, 3
LABEL, NONE = 1, 5


def check_guidance(rule, extrapolates=True):
    """Raise an error that says what is wrong where a guidance rule does not keep the contract.

    Rules like `rule` with other scales and intervals are made from its config. What is checked:
    saving; a further prediction of the same form, asked for without changing what was given; a
    scale a row, which gives what each row gives alone; an interval outside of which nothing
    happens; the count of forward passes.

    Args:
        rule: `keras_elf.guidance.Guidance`.
        extrapolates: bool. Whether a scale of 1 must be no guidance, which `Guidance` takes for
            granted when it saves passes. Defaults to `True`.

    Raises:
        ValueError: for what is not a rule.
        AssertionError: for everything else.
    """
    if not isinstance(rule, Guidance):
        raise ValueError(f"`rule` must be a keras_elf.guidance.Guidance. Received: {rule!r}")
    common.copied(rule)
    name = type(rule).__name__
    _check_without(rule, name)
    _check_scale(rule, name, extrapolates)
    _check_interval(rule, name)
    _check_cost(rule, name)


def _changed(rule, **settings):
    """A rule like `rule` with other settings."""
    config = {"interval": (0.0, 1.0), "rescale": 0.0, **settings}
    return type(rule).from_config({**rule.get_config(), **config})


def inputs(rows=slice(None)):
    """`DenoiserInputs` of a conditional batch with labels, or of some of its rows."""
    z, self_condition, condition = common.normal(3, ROWS, LENGTH, WIDTH)
    is_cond = np.array([[True, False, False, False], [True, True, False, False]])
    z[is_cond] = self_condition[is_cond] = condition[is_cond]
    given = z, self_condition, condition, is_cond
    z, self_condition, condition, is_cond = (ops.convert_to_tensor(x[rows]) for x in given)
    labels = ops.convert_to_tensor(np.full(ROWS, LABEL, "int32")[rows])
    return DenoiserInputs(z, self_condition, condition, is_cond, {"label": labels}, {"label": NONE})


def _predict(asked, t):
    """Nonlinear in all it is asked with, and each position sees its whole row."""
    label = ops.cast(asked.signals["label"], "float32")[:, None, None]
    seen = ops.sum(asked.z + asked.self_condition, axis=1, keepdims=True)
    return 0.3 * asked.z + 0.5 * asked.self_condition**2 + 0.1 * seen + t + 0.2 * label


def guided(rules, t=0.3, rows=slice(None)):
    """Clean latents that `rules` make of the batch, the condition in place."""
    numbers = range(ROWS)[rows]
    given = [(rule, rule.rows(list(range(len(numbers))))) for rule in rules]
    return guided_prediction(_predict, inputs(rows), ops.convert_to_tensor(t, "float32"), given)


def _check_without(rule, name):
    given, kept = inputs(), inputs()
    signals = dict(given.signals)
    asked = rule.without(given)
    expect(
        isinstance(asked, DenoiserInputs),
        f"`without` of {name} must return DenoiserInputs, as by `inputs._replace(...)`. Received: "
        f"{type(asked).__name__}",
    )
    tensors = {"z": (given.z, kept.z, asked.z)}
    tensors["self_condition"] = given.self_condition, kept.self_condition, asked.self_condition
    expect(
        set(asked.signals) == set(signals)
        and all(given.signals.get(key) is value for key, value in signals.items()),
        f"`without` of {name} must keep the names of the signals, in a dict of its own. Given: "
        f"{sorted(signals)}, asked with: {sorted(asked.signals)}",
    )
    for key in signals:
        tensors[key] = given.signals[key], kept.signals[key], asked.signals[key]
    for key, (now, before, other) in tensors.items():
        expect_equal(
            before, now, f"`without` of {name} changes {key!r} in place: make a new tensor", 0.0
        )
        expect(
            tuple(other.shape) == tuple(now.shape) and other.dtype == now.dtype,
            f"`without` of {name} must keep shape and dtype of {key!r}, as all predictions run as "
            f"one batch. Received: {tuple(other.shape)} {other.dtype}, given: {tuple(now.shape)} "
            f"{now.dtype}",
        )
    expect(
        any(common.apart(now, other) > 0 for now, _, other in tensors.values()),
        f"`without` of {name} asks for the very same prediction, so that it guides nothing",
    )


def _check_scale(rule, name, extrapolates):
    plain = guided([]).clean
    if extrapolates:
        expect_equal(
            plain,
            guided([_changed(rule, scale=1.0)]).clean,
            f"A scale of 1 is not guidance, and {name} changes the prediction. "
            "`extrapolates=False` leaves this check out",
        )
    scales = [1.5, 4.0]
    together = guided([_changed(rule, scale=scales)]).clean
    common.expect_tensor(together, (ROWS, LENGTH, WIDTH), f"The guided prediction of {name}")
    for row, scale in enumerate(scales):
        expect_equal(
            guided([_changed(rule, scale=scale)], rows=slice(row, row + 1)).clean,
            together[row : row + 1],
            f"With a scale a row, row {row} of {name} is not what it is alone with its scale "
            f"{scale}: `combine` must take each row by itself",
        )
    by_time = _changed(rule, scale=lambda t: 1.0 + 10.0 * t)
    expect_equal(
        guided([_changed(rule, scale=4.0)]).clean,
        guided([by_time]).clean,
        f"{name} does not use a scale that is a function of t",
    )


def _check_interval(rule, name):
    inside = _changed(rule, scale=3.0, interval=(0.25, 0.5))
    expect(
        inside.acts(0.3, 0.3) and not inside.acts(0.6, 0.7) and not inside.acts(0.0, 0.2),
        f"`acts` of {name} must be true in its interval and false outside of it",
    )
    always = _changed(rule, scale=3.0)
    expect_equal(
        guided([always]).clean,
        guided([inside]).clean,
        f"{name} with an interval does not do within it what it does without one",
    )
    # Its neighbours may need their prediction, or another evaluation of the step.
    expect_equal(
        guided([_changed(rule, scale=1.0)], 0.6).clean,
        guided([inside], 0.6).clean,
        f"{name} acts outside of its interval: it must do there what it does at a scale of 1",
    )


def _check_cost(rule, name):
    network = _Counting()
    engine = SamplingEngine(network, eager=True)
    condition, is_cond = common.normal(2, LENGTH, network.latent_dim), np.zeros((2, LENGTH), "bool")
    is_cond[:, 0] = True
    grid = np.linspace(0, 1, 5).astype("float32")
    for conditioned in (False, True):
        given = (condition, is_cond, {"label": np.int32([0, 1])}) if conditioned else ()
        config = SamplingConfig(sampler="ode", guidance=[_changed(rule, scale=2.0)])
        network.rows = 0
        z = engine.run(config, [0, 1], LENGTH, SampleNoise(0), grid, *given)
        common.expect_tensor(z, (2, LENGTH, network.latent_dim), f"A run with {name}")
        passes, counted = network.rows // 2 + 1, engine.evaluations(config, grid, conditioned)
        expect(
            passes == counted,
            f"A run with {name} costs {passes} passes, and is said to cost {counted}: "
            "`needs_prediction` must not depend on values of tensors",
        )
        if conditioned:
            expect_equal(
                condition[is_cond],
                common.array(z)[is_cond],
                f"The condition does not stay in place with {name}",
            )


class _Counting(DummyDenoiser):
    """Counts the rows it sees."""

    rows = 0

    def __init__(self):
        super().__init__(vocabulary_size=9, latent_dim=WIDTH, width=8, num_classes=2)

    def hidden_states(self, z, *args, **kwargs):
        self.rows += z.shape[0]
        return super().hidden_states(z, *args, **kwargs)
