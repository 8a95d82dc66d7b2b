"""Euler steps that first go back a little and add fresh noise."""

import numpy as np
from keras import ops

from keras_elf import checks, flow
from keras_elf.samplers.sampler import Sampler, register


@register("sde")
class SDESampler(Sampler):
    """Goes back to `t_b = a t` with fresh noise, then takes an Euler step to `t'`.

    `a = clip(1 - gamma (t' - t), 0, 1)`, `z_b = a z + (1 - a) s e`; then
    `z <- z_b + (t' - t_b) v`. `gamma = 0` is the ODE. The published choice for
    unconditional text: gamma 1.5 at 32 steps, 1.0 at 64, 2.0 at 8 and 16.

    Args:
        gamma: float >= 0. Amount of fresh noise. Defaults to `1.0`.
        noise_scale: float. Scale s of the noise, that of training. Defaults to `2.0`.
        schedule, time_mean, time_std: see `Sampler`.

    Raises:
        ValueError: for a negative or non-finite gamma.

    Source: ELF, arXiv 2605.10938 (sampling, SDE).
    """

    needs_noise = True

    def __init__(self, gamma=1.0, noise_scale=flow.NOISE_SCALE, **kwargs):
        super().__init__(**kwargs)
        self.gamma = checks.number("gamma", gamma, minimum=0)
        self.noise_scale = checks.number("noise_scale", noise_scale, minimum=0)

    def noise_amounts(self, grid):
        amounts = np.full(len(grid) - 1, self.gamma, "float32")
        amounts[-1] = 0.0
        return amounts

    def network_times(self, grid, amounts):
        return np.clip(1.0 - amounts * np.diff(grid), 0.0, 1.0) * grid[:-1]

    def step_key(self):
        return (self.noise_scale,)

    def step(self, denoise, z, self_condition, t, t_next, amount, noise, pin):
        keep = ops.clip(1.0 - amount * (t_next - t), 0.0, 1.0)
        t_back = keep * t
        z = pin(keep * z + (1.0 - keep) * self.noise_scale * noise)
        x_pred, velocity = denoise(z, self_condition, t_back)
        return z + (t_next - t_back) * velocity, x_pred

    def get_config(self):
        return {**super().get_config(), "gamma": self.gamma, "noise_scale": self.noise_scale}
