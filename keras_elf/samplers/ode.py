"""Euler steps along the learned velocity."""

from keras_elf.samplers.sampler import Sampler, register


@register("ode")
class ODESampler(Sampler):
    """Euler's method: `z <- z + (t' - t) v`. Deterministic given the first noise.

    The published choice for conditional models (64 steps). One forward pass a step.

    Args:
        schedule, time_mean, time_std: see `Sampler`.

    Source: ELF, arXiv 2605.10938 (sampling, ODE).
    """

    def step(self, denoise, state, t, t_next, noise=None):
        predicted = denoise(state["z"], state["x_pred"], t)
        z = state["z"] + (t_next - t) * predicted.velocity
        return {"z": z, "x_pred": predicted.clean}
