"""A network that knows the answer, and one run of a sampler with it."""

import numpy as np
from keras import ops

from keras_elf.guidance import DenoiserInputs, guided_prediction
from keras_elf.samplers import SampleNoise, SamplingState

ROWS, SHAPE = 2, (3, 4)
DATA = np.random.default_rng(0).standard_normal((ROWS, *SHAPE)).astype("float32")


def walk(sampler, grid, noise=None, predict=None, seed=0):
    """`(last z, [SamplingState])` of a whole run, `DATA` being where all paths lead.

    Args:
        noise: `step -> array`, instead of the seed's.
        predict: `(z, self_condition, t) -> clean latents`, instead of `DATA`.
    """
    draws, states = SampleNoise(seed), []
    predict = predict or (lambda z, self_condition, t: ops.convert_to_tensor(DATA))
    noise = noise or (lambda i: draws.step(i, range(ROWS), SHAPE))

    def denoise(z, self_condition, t):
        inputs = DenoiserInputs(z, self_condition)
        return guided_prediction(
            lambda asked, t: predict(asked.z, asked.self_condition, t), inputs, t, []
        )

    state = sampler.init(ops.convert_to_tensor(2.0 * draws.initial(range(ROWS), SHAPE)))
    num_steps = len(grid) - 1
    for i in range(num_steps):
        step = sampler.last_step if i == num_steps - 1 else sampler.step
        fresh = ops.convert_to_tensor(noise(i)) if sampler.needs_noise else None
        t, t_next = (ops.convert_to_tensor(time, "float32") for time in grid[i : i + 2])
        state = step(denoise, state, t, t_next, fresh)
        after = state["z"], state["x_pred"], range(ROWS), state
        states.append(SamplingState(i + 1, num_steps, float(grid[i + 1]), *after))
    return ops.convert_to_numpy(state["z"]), states
