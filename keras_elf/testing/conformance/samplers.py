"""What a sampler must do for the loop that drives it."""

import keras
import numpy as np
from keras import ops

from keras_elf.configurable import signature
from keras_elf.samplers import SampleNoise, SamplingConfig, SamplingEngine, get
from keras_elf.testing.conformance import common
from keras_elf.testing.conformance.common import expect, expect_equal
from keras_elf.testing.dummy_denoiser import DummyDenoiser
from keras_elf.testing.walking import DATA, ROWS, SHAPE, walk

STEPS = 5


def check_sampler(sampler, ends_at_data=True):
    """Raise an error that says what is wrong where a sampler does not keep the contract.

    What is checked: saving; a grid from 0 to 1; a run that ends at the data for a network that
    knows them; a last interval without noise; the self-condition, which is the prediction
    before; `times` and `evaluations`, which count the cost and place the guidance; a state of
    one form; runs of `SamplingEngine` with and without a condition that stays in place.

    Args:
        sampler: `keras_elf.samplers.Sampler`.
        ends_at_data: bool. Whether a network that knows the data must lead to them. `False` for
            a sampler that stops short of them on purpose. Defaults to `True`.

    Raises:
        ValueError: for what is not a sampler, or one without a step.
        AssertionError: for everything else.
    """
    get(sampler)
    common.copied(sampler)
    name = type(sampler).__name__
    grids = _grids(sampler, name)
    form = _form(sampler.init(ops.convert_to_tensor(DATA)))
    expect(
        {"z", "x_pred"} <= set(form),
        f"`init` of {name} must return a dict with 'z' and 'x_pred'. Received: {sorted(form)}",
    )
    _check_last_interval(sampler, name)
    for grid in grids:
        _check_run(sampler, name, grid, form, ends_at_data)
        _check_times(sampler, name, grid)
    _check_self_condition(sampler, name)
    _check_engine(sampler, name)


def _grids(sampler, name):
    """The sampler's own grid, an even one and a single step."""
    normal = np.linspace(-1.0, 2.0, STEPS - 1).astype("float32")
    own = np.asarray(sampler.time_grid(STEPS, normal))
    right = own.shape == (STEPS + 1,) and own[0] == 0 and own[-1] == 1 and (np.diff(own) > 0).all()
    expect(
        right,
        f"`time_grid({STEPS})` of {name} must be {STEPS + 1} rising times from 0 to 1. Received: "
        f"{own.tolist()}",
    )
    return [own, _even(), np.float32([0, 1])]


def _even():
    return np.linspace(0, 1, STEPS + 1).astype("float32")


def _check_run(sampler, name, grid, form, ends_at_data):
    z, states = walk(sampler, grid)
    for state in states:
        found = _form(state.state)
        expect(
            found == form,
            f"The state of {name} must have one form, or each step is compiled anew. After `init`: "
            f"{form}, after step {state.step}: {found}",
        )
    common.expect_tensor(states[-1].z, DATA.shape, f"`z` of {name}")
    if ends_at_data:
        expect_equal(
            DATA,
            z,
            f"A run of {name} over {len(grid) - 1} steps must end at the data if the network "
            "predicts them: the last step must arrive at t = 1. `ends_at_data=False` leaves this "
            "check out",
        )


def _form(state):
    return {
        key: (tuple(value.shape), keras.backend.standardize_dtype(value.dtype))
        for key, value in state.items()
    }


def _check_times(sampler, name, grid):
    asked = []

    def predict(z, self_condition, t):
        asked.append(float(t))
        return ops.convert_to_tensor(DATA)

    walk(sampler, grid, predict=predict)
    told = [sampler.times(float(t), float(s)) for t, s in zip(grid[:-1], grid[1:], strict=True)]
    told = [time for times in told for time in times]
    same = len(told) == len(asked) and np.allclose(told, asked, atol=1e-5)
    expect(
        same,
        f"`times` of {name} must tell when `step` asks the network: guidance in an interval and "
        f"the count of forward passes go by it. Told: {told}, asked: {asked}",
    )
    if np.array_equal(grid, _even()):
        counted = sampler.evaluations(STEPS)
        expect(
            counted == len(asked),
            f"`evaluations({STEPS})` of {name} is {counted}, and the network was asked "
            f"{len(asked)} times",
        )


def _check_last_interval(sampler, name):
    def loud_at(step):
        return lambda i: np.full((ROWS, *SHAPE), 100.0 if i == step else 0.5, "float32")

    # A prediction that depends on z, so that noise would show in the result.
    def half(z, self_condition, t):
        return 0.5 * z

    z, loud = (walk(sampler, _even(), loud_at(step), predict=half)[0] for step in (None, STEPS - 1))
    expect_equal(
        z,
        loud,
        f"{name} adds noise in the last interval, which nothing takes off again: leave it out "
        "where `t_next` is 1",
    )


def _check_self_condition(sampler, name):
    seen, made = [], []

    def predict(z, self_condition, t):
        seen.append(self_condition)
        made.append(0.5 * z + 0.1)
        return made[-1]

    _, states = walk(sampler, _even(), predict=predict)
    advice = "hand on `state['x_pred']`, and keep the newest `clean` there"
    for number, (given, before) in enumerate(
        zip(seen, [ops.zeros_like(made[0]), *made[:-1]], strict=True)
    ):
        expect_equal(
            before,
            given,
            f"The self-condition of {name} must be the prediction before, zeros at first. In "
            f"evaluation {number + 1} it is not: {advice}",
        )
    expect_equal(made[-1], states[-1].x_pred, f"`x_pred` of {name} is not the last one: {advice}")


def _check_engine(sampler, name):
    before = signature(sampler)
    network, length, samples = _Counting(), 4, [0, 1]
    engine = SamplingEngine(network)
    condition = common.normal(2, length, network.latent_dim, seed=1)
    is_cond = np.array([[True, True, False, False], [True, False, False, False]])
    for given in ((), (condition, is_cond)):
        states, calls = [], []
        for num_steps in (STEPS, STEPS + 2):
            config = SamplingConfig(num_steps, sampler, guidance=())
            grid = np.linspace(0, 1, num_steps + 1).astype("float32")
            network.calls = 0
            noise = SampleNoise(0)
            z = engine.run(config, samples, length, noise, grid, *given, callback=states.append)
            calls.append(network.calls)
            common.expect_tensor(z, (2, length, network.latent_dim), f"The result of {name}")
        expect(
            signature(sampler) == before,
            f"{name} changes while it runs, so that every step is compiled anew and runs share "
            "what they know: keep all in the state",
        )
        expect(
            keras.backend.backend() == "torch" or calls[1] == 0,
            f"The step of {name} is compiled anew in every run: have the state the same form and "
            "dtypes at the beginning of a step as at its end",
        )
        if given:
            for state in states:
                expect_equal(
                    condition[is_cond],
                    common.array(state.x_pred)[is_cond],
                    f"The condition does not stay in `x_pred` of {name}: keep `clean` as `denoise` "
                    "returns it",
                )


class _Counting(DummyDenoiser):
    """Counts how often its Python is run: where steps are compiled, once a trace."""

    calls = 0

    def __init__(self):
        super().__init__(vocabulary_size=9, latent_dim=4, width=8)

    def hidden_states(self, *args, **kwargs):
        self.calls += 1
        return super().hidden_states(*args, **kwargs)
