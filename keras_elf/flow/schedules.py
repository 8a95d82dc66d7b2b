"""Draws of time and guidance scale as functions of given normals and uniforms.

Nothing here draws by itself: randomness is an argument, so that the same function
serves training under jit, sampling, and the comparison with recorded numbers.
"""

from keras import ops

from keras_elf import checks

TIME_MEAN, TIME_STD = -1.5, 0.8
DECODE_TIME_MEAN, DECODE_TIME_STD = 0.8, 0.8
TIME_SCHEDULES = ("logit_normal", "uniform")


def logit_normal(normal, mean=TIME_MEAN, std=TIME_STD):
    """`sigmoid(mean + std * normal)`: times in (0, 1) from standard normals of any shape."""
    return ops.sigmoid(mean + std * ops.cast(normal, "float32"))


def guidance_scale(uniform, minimum=0.5, maximum=5.0):
    """Self-conditioning guidance scales, log-uniform in `1 + w`, from uniforms in [0, 1).

    `(1 + minimum) * ((1 + maximum) / (1 + minimum)) ** u - 1`, so that `w` lies in
    `[minimum, maximum]` (the paper's training-time guidance).
    """
    ratio = (1.0 + maximum) / (1.0 + minimum)
    return (1.0 + minimum) * ops.power(ratio, ops.cast(uniform, "float32")) - 1.0


def time_grid(num_steps, normal=None, schedule="logit_normal", mean=TIME_MEAN, std=TIME_STD):
    """The `num_steps + 1` points from 0 to 1 that a sampler visits.

    Args:
        num_steps: int >= 1. Number of intervals.
        normal: tensor `(num_steps - 1,)` of standard normals; needed by `"logit_normal"`.
        schedule: `"logit_normal"` (sorted draws of the training times between the ends, as
            published) or `"uniform"` (evenly spaced).
        mean: float. Mean of the logit-normal. Defaults to `-1.5`.
        std: float. Standard deviation of the logit-normal. Defaults to `0.8`.

    Returns:
        float32 tensor `(num_steps + 1,)`, increasing, first 0 and last 1.

    Raises:
        ValueError: for `num_steps < 1`, an unknown schedule or missing normals.
    """
    num_steps = checks.integer("num_steps", num_steps, minimum=1)
    checks.choice("schedule", schedule, TIME_SCHEDULES)
    if schedule == "uniform":
        return ops.linspace(0.0, 1.0, num_steps + 1, dtype="float32")
    if normal is None or tuple(normal.shape) != (num_steps - 1,):
        shape = None if normal is None else tuple(normal.shape)
        raise ValueError(
            f"`normal` must hold {num_steps - 1} standard normals (num_steps - 1) for the "
            f"'logit_normal' schedule. Received shape: {shape}"
        )
    ends = ops.zeros((1,), dtype="float32"), ops.ones((1,), dtype="float32")
    inner = ops.sort(logit_normal(normal, mean, std))
    return ops.concatenate([ends[0], inner, ends[1]])
