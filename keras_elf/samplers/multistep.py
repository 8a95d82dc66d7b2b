"""Second-order steps that remember the velocity of the step before."""

from keras import ops

from keras_elf.samplers.ode import ODESampler
from keras_elf.samplers.sampler import register


@register("multistep")
class MultistepSampler(ODESampler):
    """Two-step Adams-Bashforth: second order at one forward pass a step.

    `z <- z + h (v + h / (2 h_last) (v - v_last))` with `h = t' - t`, for steps of any size.
    The first and the last interval are Euler's. Deterministic given the first noise.

    Args:
        schedule, time_mean, time_std: see `Sampler`.

    Source: Zhang & Chen, arXiv 2204.13902 (multistep solvers of the probability flow ODE).
    """

    def init(self, z):
        empty = ops.zeros_like(z[:, :1, :1])
        return {**super().init(z), "velocity": ops.zeros_like(z), "interval": empty}

    def step(self, denoise, state, t, t_next, noise=None):
        predicted = denoise(state["z"], state["x_pred"], t)
        interval, last = t_next - t, state["interval"]
        ratio = ops.where(last > 0, interval / ops.maximum(last, 1e-6), 0.0)
        ratio = ops.where(t_next < 1.0, ratio, 0.0)
        change = 0.5 * ratio * (predicted.velocity - state["velocity"])
        return {
            "z": state["z"] + interval * (predicted.velocity + change),
            "x_pred": predicted.clean,
            "velocity": predicted.velocity,
            "interval": ops.zeros_like(last) + interval,
        }
