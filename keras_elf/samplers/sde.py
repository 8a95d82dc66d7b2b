"""Euler steps that first go back a little and add fresh noise."""

import numpy as np
from keras import ops

from keras_elf import checks, flow
from keras_elf.samplers.sampler import Sampler, register


@register("sde")
class SDESampler(Sampler):
    """Goes back to `t_b = a t` with fresh noise, then takes an Euler step to `t'`.

    `a = clip(1 - gamma (t' - t), 0, 1)`, `z_b = a z + (1 - a) s e`; then
    `z <- z_b + (t' - t_b) v`. `gamma = 0` is the ODE; the last interval always is. The
    published choice for unconditional text: gamma 1.5 at 32 steps, 1.0 at 64, 2.0 at 8 and
    16. One forward pass a step.

    Gamma may fall along the way: `final_gamma + (gamma - final_gamma) (1 - t)^power`.

    Args:
        gamma: float >= 0. Amount of fresh noise. Defaults to `1.0`.
        noise_scale: float or `None`. Scale s of the noise. Defaults to `None`: that of the
            model's training.
        final_gamma: float >= 0. Gamma at t = 1. Defaults to `None`: `gamma`, throughout.
        power: float > 0. How early gamma falls. Defaults to `1.0`, evenly.
        schedule, time_mean, time_std: see `Sampler`.

    Raises:
        ValueError: for a negative or non-finite number.

    Source: ELF, arXiv 2605.10938 (sampling, SDE).
    """

    needs_noise = True

    def __init__(self, gamma=1.0, noise_scale=None, final_gamma=None, power=1.0, **kwargs):
        super().__init__(**kwargs)
        self.gamma = checks.number("gamma", gamma, minimum=0)
        self.noise_scale = noise_scale
        if noise_scale is not None:
            self.noise_scale = checks.number("noise_scale", noise_scale, minimum=0)
        self.final_gamma = final_gamma
        if final_gamma is not None:
            self.final_gamma = checks.number("final_gamma", final_gamma, minimum=0)
        self.power = checks.number("power", power, minimum=1e-6)

    def step(self, denoise, state, t, t_next, noise=None):
        keep = self._kept(t, t_next, ops.clip, ops.where)
        t_back = keep * t
        scale = flow.NOISE_SCALE if self.noise_scale is None else self.noise_scale
        z = keep * state["z"] + (1.0 - keep) * scale * noise
        predicted = denoise(z, state["x_pred"], t_back)
        return {"z": z + (t_next - t_back) * predicted.velocity, "x_pred": predicted.clean}

    def times(self, t, t_next):
        return (float(t * self._kept(t, t_next, np.clip, np.where)),)

    def _kept(self, t, t_next, clip, where):
        """The share a of z that stays, in the arithmetic of NumPy or of a backend."""
        gamma = self.gamma
        if self.final_gamma is not None:
            gamma = self.final_gamma + (gamma - self.final_gamma) * (1.0 - t) ** self.power
        return where(t_next < 1.0, clip(1.0 - gamma * (t_next - t), 0.0, 1.0), 1.0)
