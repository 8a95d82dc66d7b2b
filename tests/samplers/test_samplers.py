"""What every sampler must do, and what sets the two apart."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_elf import samplers
from keras_elf.samplers import ODESampler, Sampler, SDESampler, sampler
from tests.samplers.walking import CONDITION, DATA, IS_COND, ROWS, SHAPE, walk

every_sampler = pytest.mark.parametrize("name", sorted(sampler.SAMPLERS))
NORMAL = np.linspace(-1.0, 2.0, 4).astype("float32")


def grids(each):
    """The sampler's own grid, an even one and a single step."""
    even = np.linspace(0, 1, 6).astype("float32")
    return [each.time_grid(5, NORMAL), even, np.float32([0, 1])]


@every_sampler
def test_run_ends_at_the_data(name):
    each = samplers.get(name)
    for grid in grids(each):
        z, states = walk(each, grid)
        np.testing.assert_allclose(z, DATA, atol=1e-4)
        assert [s.step for s in states] == list(range(1, len(grid)))
        np.testing.assert_allclose([s.t for s in states], grid[1:])
        assert {s.num_steps for s in states} == {len(grid) - 1}
        assert states[-1].samples == range(ROWS)
        assert states[-1].z.shape == states[-1].x_pred.shape == (ROWS, *SHAPE)
        assert keras.backend.standardize_dtype(states[-1].z.dtype) == "float32"


@every_sampler
def test_last_interval_takes_no_noise(name):
    each = samplers.get(name)
    grid = grids(each)[1]
    amounts = each.noise_amounts(grid)
    assert amounts.shape == (5,) and amounts.dtype == np.float32 and amounts[-1] == 0

    def loud_at(steps):
        return lambda i: np.full((ROWS, *SHAPE), 100.0 if i in steps else 0.5, "float32")

    # A prediction that depends on z, so that noise would show in the result.
    def half(z, self_condition, t):
        return 0.5 * z

    z, _ = walk(each, grid, loud_at(()), predict=half)
    loud, _ = walk(each, grid, loud_at((4,)), predict=half)
    np.testing.assert_array_equal(loud, z)
    if each.needs_noise:
        assert np.abs(walk(each, grid, loud_at((3,)), predict=half)[0] - z).max() > 0.1


@every_sampler
def test_condition_stays_where_it_is(name):
    each = samplers.get(name)
    z, states = walk(each, grids(each)[1], is_cond=IS_COND)
    for state in states:
        for value in (state.z, state.x_pred):
            value = ops.convert_to_numpy(value)
            np.testing.assert_allclose(value[IS_COND], CONDITION[IS_COND], rtol=1e-6)
    np.testing.assert_allclose(z[~IS_COND], DATA[~IS_COND], atol=1e-4)


@every_sampler
def test_self_condition_is_the_last_prediction(name):
    seen = []

    def predict(z, self_condition, t):
        seen.append(ops.convert_to_numpy(self_condition))
        return 0.5 * z + 0.1

    each = samplers.get(name)
    _, states = walk(each, grids(each)[1], predict=predict)
    assert len(seen) == 5  # one prediction a step
    np.testing.assert_array_equal(seen[0], 0)
    for previous, given in zip(states, seen[1:], strict=False):
        np.testing.assert_array_equal(given, ops.convert_to_numpy(previous.x_pred))


@every_sampler
def test_config_makes_an_equal_sampler(name):
    default = samplers.get(name)
    settings = {**default.get_config(), "schedule": "uniform", "time_mean": -1.0, "time_std": 0.5}
    each = type(default).from_config(settings)
    serialised = keras.saving.serialize_keras_object(each)
    for copy in (keras.saving.deserialize_keras_object(serialised), samplers.get(serialised)):
        assert type(copy) is type(each)
        assert copy.get_config() == each.get_config() == settings
        assert copy.step_key() == each.step_key()
        np.testing.assert_array_equal(copy.time_grid(4), each.time_grid(4))


@every_sampler
def test_grid_follows_the_schedule(name):
    cls = type(samplers.get(name))
    np.testing.assert_allclose(cls(schedule="uniform").time_grid(4), [0, 0.25, 0.5, 0.75, 1])
    grid = cls(time_mean=0.5, time_std=2.0).time_grid(5, NORMAL)
    inner = 1 / (1 + np.exp(-(0.5 + 2.0 * NORMAL)))
    np.testing.assert_allclose(grid, [0, *inner, 1], atol=1e-6)
    with pytest.raises(ValueError, match="4 standard normals"):
        cls().time_grid(5)


@every_sampler
def test_times_told_beforehand_are_the_times_asked(name):
    each = samplers.get(name)
    for grid in grids(each):
        asked = []

        def predict(z, self_condition, t, asked=asked):
            asked.append(float(t))
            return ops.convert_to_tensor(DATA)

        walk(each, grid, predict=predict)
        told = each.network_times(grid, each.noise_amounts(grid))
        if told is not None:
            np.testing.assert_allclose(told, asked, atol=1e-6)


def test_a_step_of_ones_own_starts_without_known_times():
    class Midpoint(ODESampler):
        def step(self, denoise, z, self_condition, t, t_next, amount, noise, pin):
            half = 0.5 * (t_next - t)
            x, velocity = denoise(z, self_condition, t)
            x, velocity = denoise(z + half * velocity, x, t + half)
            return z + (t_next - t) * velocity, x

    class Renamed(ODESampler):
        """Only settings of its own."""

    grid = np.float32([0, 0.5, 1])
    amounts = np.zeros(2, "float32")
    assert Midpoint().network_times(grid, amounts) is None
    np.testing.assert_array_equal(Renamed().network_times(grid, amounts), [0, 0.5])


def test_ode_is_euler():
    grid = np.float32([0, 0.3, 1])
    _, states = walk(ODESampler(), grid, predict=lambda z, sc, t: 0.5 * z)
    first, second = (ops.convert_to_numpy(s.z) for s in states)
    # z + (1 - 0.3) * (0.5 z - z) / (1 - 0.3), once the first step is done.
    np.testing.assert_allclose(second, 0.5 * first, rtol=1e-5)


def test_sde_step_equals_the_formula():
    grid, gamma, scale = np.float32([0.0, 0.2, 0.5, 1.0]), 1.5, 3.0
    noise = np.random.default_rng(3).standard_normal((3, ROWS, *SHAPE)).astype("float32")
    each = SDESampler(gamma=gamma, noise_scale=scale)
    _, states = walk(each, grid, lambda i: noise[i])
    z = ops.convert_to_numpy(states[0].z)
    keep = 1 - gamma * 0.3
    z, t = keep * z + (1 - keep) * scale * noise[1], keep * 0.2
    expected = z + (0.5 - t) * (DATA - z) / (1 - t)
    np.testing.assert_allclose(ops.convert_to_numpy(states[1].z), expected, rtol=1e-4, atol=1e-4)


def test_sde_goes_back_to_the_start_at_most():
    """gamma h above 1 starts anew from noise, at time 0 and not before it."""
    times = []

    def predict(z, self_condition, t):
        times.append(float(t))
        return ops.convert_to_tensor(DATA)

    z, _ = walk(SDESampler(gamma=100.0), np.float32([0, 0.5, 0.75, 1]), predict=predict)
    assert times == [0.0, 0.0, 0.75]
    np.testing.assert_allclose(z, DATA, atol=1e-4)


def test_sde_without_noise_is_the_ode():
    grid = ODESampler().time_grid(5, NORMAL)

    def predict(z, self_condition, t):
        return 0.3 * z + 0.2 * self_condition

    ode, sde = (
        walk(each, grid, predict=predict)[0] for each in (ODESampler(), SDESampler(gamma=0.0))
    )
    np.testing.assert_allclose(sde, ode, rtol=1e-6, atol=1e-6)
    noisy, _ = walk(SDESampler(gamma=1.0), grid, predict=predict)
    assert np.abs(noisy - ode).max() > 0.1


@pytest.mark.parametrize(
    ("cls", "arguments", "message"),
    [
        (SDESampler, {"gamma": -0.1}, "`gamma`.*>= 0.*-0.1"),
        (SDESampler, {"gamma": float("nan")}, "`gamma`.*nan"),
        (SDESampler, {"gamma": "1.5"}, "`gamma`.*'1.5'"),
        (SDESampler, {"noise_scale": -1.0}, "`noise_scale`"),
        (ODESampler, {"schedule": "cosine"}, "`schedule`.*'cosine'"),
        (ODESampler, {"time_std": -1.0}, "`time_std`"),
        (ODESampler, {"time_mean": float("inf")}, "`time_mean`"),
    ],
)
def test_bad_arguments_are_refused(cls, arguments, message):
    with pytest.raises(ValueError, match=message):
        cls(**arguments)
    with pytest.raises(TypeError):
        cls(gama=1.0)


def test_unknown_samplers_are_refused():
    with pytest.raises(ValueError, match="`sampler`.*'sed'.*Did you mean 'sde'"):
        samplers.get("sed")
    for wrong in (None, 3, SDESampler):
        with pytest.raises(ValueError, match=r"`sampler` must be.*\['ode', 'sde'\]"):
            samplers.get(wrong)


def test_get_gives_a_sampler_back_as_it_is():
    each = SDESampler(gamma=1.5)
    assert samplers.get(each) is each


def test_a_new_sampler_needs_one_step_only(monkeypatch):
    monkeypatch.setattr(sampler, "SAMPLERS", dict(sampler.SAMPLERS))

    @samplers.register("heun")
    class HeunSampler(Sampler):
        """Second order: the mean of the velocities at both ends of the interval."""

        def step(self, denoise, z, self_condition, t, t_next, amount, noise, pin):
            x, v = denoise(z, self_condition, t)
            x_next, v_next = denoise(pin(z + (t_next - t) * v), x, t_next)
            # At t = 1 the velocity is a quotient of two zeros.
            mean = ops.where(t_next < 1, 0.5 * (v + v_next), v)
            return z + (t_next - t) * mean, x_next

    each = samplers.get("heun")
    assert isinstance(each, HeunSampler)
    assert "HeunSampler" in keras.saving.serialize_keras_object(each)["registered_name"]
    test_run_ends_at_the_data("heun")
    test_last_interval_takes_no_noise("heun")
    test_condition_stays_where_it_is("heun")
    test_config_makes_an_equal_sampler("heun")
    test_grid_follows_the_schedule("heun")
