"""Second-order steps with the velocities at both ends of the interval."""

from keras_elf.samplers.ode import ODESampler
from keras_elf.samplers.sampler import register


@register("heun")
class HeunSampler(ODESampler):
    """Heun's method: an Euler step, then again with the mean of both ends' velocities.

    Two forward passes a step, one in the last interval, which is Euler's: N steps cost
    2N - 1 passes and a decode. Deterministic given the first noise.

    Args:
        schedule, time_mean, time_std: see `Sampler`.

    Source: Karras et al., arXiv 2206.00364 (algorithm 1).
    """

    def step(self, denoise, state, t, t_next, noise=None):
        first = denoise(state["z"], state["x_pred"], t)
        ahead = state["z"] + (t_next - t) * first.velocity
        second = denoise(ahead, first.clean, t_next)
        mean = 0.5 * (first.velocity + second.velocity)
        return {"z": state["z"] + (t_next - t) * mean, "x_pred": second.clean}

    def last_step(self, denoise, state, t, t_next, noise=None):
        return super().step(denoise, state, t, t_next, noise)

    def times(self, t, t_next):
        return (t, t_next) if t_next < 1.0 else (t,)
