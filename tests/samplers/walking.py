"""A network that knows the answer, and one run of a sampler with it."""

import numpy as np
from keras import ops

from keras_elf import flow
from keras_elf.samplers import SampleNoise, run

ROWS, SHAPE = 2, (3, 4)
DATA = np.random.default_rng(0).standard_normal((ROWS, *SHAPE)).astype("float32")
CONDITION = 10.0 + DATA
IS_COND = np.array([[True, False, False], [True, True, False]])


def walk(sampler, grid, noise=None, is_cond=None, predict=None, seed=0):
    """`(last z, [SamplingState])` of a whole run, `DATA` being where all paths lead.

    Args:
        noise: `step -> array`, instead of the seed's.
        is_cond: positions held at `CONDITION`.
        predict: `(z, self_condition, t) -> clean latents`, instead of `DATA`.
    """
    draws, states = SampleNoise(seed), []
    predict = predict or (lambda z, self_condition, t: ops.convert_to_tensor(DATA))
    noise = noise or (lambda i: draws.step(i, range(ROWS), SHAPE))

    def pin(z):
        return flow.pin(z, CONDITION, is_cond)

    def denoise(z, self_condition, t):
        x = pin(predict(z, self_condition, t))
        return x, flow.velocity(x, z, t)

    def step(z, self_condition, t, t_next, amount, e):
        return sampler.step(denoise, z, self_condition, t, t_next, amount, e, pin)

    z = pin(ops.convert_to_tensor(2.0 * draws.initial(range(ROWS), SHAPE)))
    z = run(
        step,
        grid,
        sampler.noise_amounts(grid),
        z,
        pin(ops.zeros_like(z)),
        lambda i: ops.convert_to_tensor(noise(i)) if sampler.needs_noise else None,
        range(ROWS),
        states.append,
    )
    return ops.convert_to_numpy(z), states
