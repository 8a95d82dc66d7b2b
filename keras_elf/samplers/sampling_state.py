"""What a callback sees while text is sampled."""

import dataclasses
from typing import Any


@dataclasses.dataclass
class SamplingState:
    """A batch after one step of the sampler.

    Attributes:
        step: int. Steps done, from 1 to `num_steps`.
        num_steps: int. Steps of the run.
        t: float. Flow time reached.
        z: float32 tensor `(batch, length, width)`. Latents at `t`.
        x_pred: tensor of the same shape. The clean latents predicted in this step.
        samples: range or list. Which samples of the run the rows are.
        state: dict. All that the sampler keeps from step to step.
    """

    step: int
    num_steps: int
    t: float
    z: Any
    x_pred: Any
    samples: Any
    state: dict = dataclasses.field(default_factory=dict)
