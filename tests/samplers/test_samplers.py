"""What sets the samplers apart; what all must do is in `keras_elf.testing.check_sampler`."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_elf import samplers, testing
from keras_elf.samplers import ODESampler, Sampler, SDESampler, sampler
from keras_elf.testing.walking import DATA, ROWS, SHAPE, walk

every_sampler = pytest.mark.parametrize("name", sorted(sampler.SAMPLERS))
NORMAL = np.linspace(-1.0, 2.0, 4).astype("float32")


@every_sampler
def test_grid_follows_the_schedule(name):
    cls = type(samplers.get(name))
    np.testing.assert_allclose(cls(schedule="uniform").time_grid(4), [0, 0.25, 0.5, 0.75, 1])
    grid = cls(time_mean=0.5, time_std=2.0).time_grid(5, NORMAL)
    inner = 1 / (1 + np.exp(-(0.5 + 2.0 * NORMAL)))
    np.testing.assert_allclose(grid, [0, *inner, 1], atol=1e-6)
    with pytest.raises(ValueError, match="4 standard normals"):
        cls().time_grid(5)


@pytest.mark.parametrize(("name", "order"), [("ode", 1), ("heun", 2), ("multistep", 2)])
def test_order_of_the_error(name, order):
    """Halving the steps of a smooth flow divides the error by 2 ** order."""

    def predict(z, self_condition, t):
        # The velocity -z: the exact solution shrinks as exp(-t).
        return z - (1.0 - t) * z

    def error(num_steps):
        # Only up to t = 1/2: the last interval is Euler's for every sampler.
        grid = np.append(np.linspace(0.0, 0.5, num_steps + 1), 1.0).astype("float32")
        _, states = walk(samplers.get(name), grid, predict=predict)
        first = 2.0 * samplers.SampleNoise(0).initial(range(ROWS), SHAPE)
        return np.abs(ops.convert_to_numpy(states[-2].z) - np.exp(-0.5) * first).max()

    assert 0.7 * 2**order < error(8) / error(16) < 1.4 * 2**order


def test_multistep_equals_the_formula_on_uneven_steps():
    grid = np.float32([0, 0.1, 0.4, 1])
    _, states = walk(samplers.get("multistep"), grid, predict=lambda z, sc, t: 0.5 * z)
    z = [ops.convert_to_numpy(s.z) for s in states]
    start = 2.0 * samplers.SampleNoise(0).initial(range(ROWS), SHAPE)
    v0, v1 = -0.5 * start, -0.5 * z[0] / 0.9
    np.testing.assert_allclose(z[0], start + 0.1 * v0, rtol=1e-5)
    np.testing.assert_allclose(z[1], z[0] + 0.3 * (v1 + 0.3 / 0.2 * (v1 - v0)), rtol=1e-5)


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


def test_gamma_falls_with_t():
    grid, noise = np.float32([0, 0.4, 0.8, 1]), np.ones((ROWS, *SHAPE), "float32")
    each = SDESampler(gamma=1.5, final_gamma=0.5, power=2.0)
    _, states = walk(each, grid, lambda i: noise)
    keep = 1 - (0.5 + 1.0 * 0.6**2) * 0.4
    z = keep * ops.convert_to_numpy(states[0].z) + (1 - keep) * 2.0 * noise
    expected = z + (0.8 - keep * 0.4) * (DATA - z) / (1 - keep * 0.4)
    np.testing.assert_allclose(ops.convert_to_numpy(states[1].z), expected, rtol=1e-4, atol=1e-4)
    even = SDESampler(gamma=1.5, final_gamma=1.5)
    np.testing.assert_allclose(walk(even, grid)[0], walk(SDESampler(gamma=1.5), grid)[0], atol=1e-6)


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
        with pytest.raises(ValueError, match=r"`sampler` must be.*'ode', 'sde'\]"):
            samplers.get(wrong)


def test_get_gives_a_sampler_back_as_it_is():
    each = SDESampler(gamma=1.5)
    assert samplers.get(each) is each


def test_a_new_sampler_needs_one_step_only(monkeypatch):
    monkeypatch.setattr(sampler, "SAMPLERS", dict(sampler.SAMPLERS))

    @samplers.register("midpoint")
    class MidpointSampler(ODESampler):
        """Second order: the velocity at the middle of the interval."""

        def step(self, denoise, state, t, t_next, noise=None):
            half = 0.5 * (t_next - t)
            first = denoise(state["z"], state["x_pred"], t)
            middle = denoise(state["z"] + half * first.velocity, first.clean, t + half)
            z = state["z"] + (t_next - t) * middle.velocity
            return {"z": z, "x_pred": middle.clean}

        def times(self, t, t_next):
            return t, t + 0.5 * (t_next - t)

    assert isinstance(samplers.get("midpoint"), MidpointSampler)
    saved = keras.saving.serialize_keras_object(samplers.get("midpoint"))
    assert "MidpointSampler" in saved["registered_name"]
    testing.check_sampler(samplers.get("midpoint"))
    test_grid_follows_the_schedule("midpoint")


def test_a_sampler_without_a_step_is_refused():
    class Empty(Sampler):
        pass

    with pytest.raises(ValueError, match="Empty must implement `step`"):
        samplers.get(Empty())
