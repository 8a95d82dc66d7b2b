"""The sampling loop: Python over one compiled step."""

import dataclasses
from typing import Any


@dataclasses.dataclass
class SamplingState:
    """What a callback sees after each step.

    Attributes:
        step: int. Steps done, from 1 to `num_steps`.
        num_steps: int. Steps of the run.
        t: float. Flow time reached.
        z: tensor `(batch, length, width)`. Latents at `t`.
        x_pred: tensor of the same shape. The clean latents predicted in this step.
        samples: range. Which samples of the run the rows are.
    """

    step: int
    num_steps: int
    t: float
    z: Any
    x_pred: Any
    samples: range


def run(step, grid, amounts, z, self_condition, given, samples, callback=None):
    """Walk `z` along the grid.

    The time and the amount of noise are arguments of the step, so that one compiled
    function serves all steps and settings of a shape.

    Args:
        step: `(z, self_condition, t, t_next, amount, given) -> (z, x_pred)`.
        grid: `(num_steps + 1,)` times.
        amounts: `(num_steps,)` amounts of noise.
        z, self_condition: starting tensors.
        given: `step index -> ` what else that step needs, its noise for one.
        samples: range of the samples in the batch.
        callback: called with a `SamplingState` after each step, or `None`.

    Returns:
        Latents at the last time.
    """
    num_steps = len(grid) - 1
    x_pred = self_condition
    for i in range(num_steps):
        z, x_pred = step(z, x_pred, grid[i], grid[i + 1], amounts[i], given(i))
        if callback is not None:
            callback(SamplingState(i + 1, num_steps, float(grid[i + 1]), z, x_pred, samples))
    return z
