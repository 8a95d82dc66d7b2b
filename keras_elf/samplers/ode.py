"""Euler steps along the learned velocity."""

from keras_elf.samplers.sampler import Sampler, register


@register("ode")
class ODESampler(Sampler):
    """Euler's method: `z <- z + (t' - t) v`. Deterministic given the first noise.

    The published choice for conditional models (64 steps).

    Args:
        schedule, time_mean, time_std: see `Sampler`.

    Source: ELF, arXiv 2605.10938 (sampling, ODE).
    """

    def network_times(self, grid, amounts):
        return grid[:-1]

    def step(self, denoise, z, self_condition, t, t_next, amount, noise, pin):
        x_pred, velocity = denoise(z, self_condition, t)
        return z + (t_next - t) * velocity, x_pred
