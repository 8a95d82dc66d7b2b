"""Settings that suit the length of a run: 200 steps are not a small piece of 100,000."""

import math

from keras import ops

from keras_elf import checks
from keras_elf.optimizers import WarmupSchedule, scaled_learning_rate

SHORT_RUN_PEAK, PUBLISHED_BATCH_SIZE = 1e-2, 512
WARMUP_SHARE, LONGEST_WARMUP = 0.05, 5_000
DECAY_SHARE = 0.7
AVERAGED_SHARE, LARGEST_MOMENTUM = 0.1, 0.9999
# Runs of this length stand halfway, in logarithms, between the short rule and the published one.
HALFWAY = 5_000
USUAL_EPOCHS, SHORTEST_RUN, LONGEST_RUN = 8, 400, 3_000
# An average that still holds more of the first weights than this has hardly moved.
MOST_OF_START = 0.1


def settings_for_run(total_steps, batch_size):
    """Learning rate, warm-up, decay and averages for a run of a known length.

    With `s = 1 / (1 + (total_steps / 5000)^2)`, near 1 for short and near 0 for long runs:

    - peak rate `0.01^s r^(1 - s)`, where r is the published rate of the batch size, 2e-3 at
      512;
    - warm-up over 5 % of the steps, at most 5,000;
    - linear decay over the last 70 %, down to `(1 - s)` of the peak: to zero in short runs,
      none in long ones;
    - averages over about the last tenth of the run: decay `1 - 1 / (total_steps / 10)` a step,
      at most 0.9999.

    Args:
        total_steps: int. Optimizer steps of the run.
        batch_size: int. Rows in an optimizer step, over all devices.

    Returns:
        dict of fields of `TrainingRecipe`.
    """
    steps = checks.integer("total_steps", total_steps, minimum=1)
    short = 1.0 / (1.0 + (steps / HALFWAY) ** 2)
    peak = SHORT_RUN_PEAK**short * scaled_learning_rate(batch_size) ** (1.0 - short)
    warmup = min(LONGEST_WARMUP, math.floor(WARMUP_SHARE * steps))
    return {
        "peak_learning_rate": peak,
        "warmup_steps": warmup,
        "decay": "linear",
        "total_steps": steps,
        "decay_steps": max(1, round(DECAY_SHARE * steps)),
        "final_learning_rate": (1.0 - short) * peak,
        "ema_momentum": min(LARGEST_MOMENTUM, 1.0 - 1.0 / max(1.0, AVERAGED_SHARE * steps)),
    }


def default_batch_size(num_rows):
    """A power of two near half the root of `num_rows`, from 32 to 128, no more than the rows.

    Few rows in large batches make runs of a handful of steps; see `settings_for_run`.

    Args:
        num_rows: int. Rows of the training set.

    Returns:
        int.
    """
    num_rows = checks.integer("num_rows", num_rows, minimum=1)
    nearest = 2 ** max(0, round(math.log2(num_rows) / 2 - 1))
    return min(num_rows, max(32, min(128, nearest)))


def default_epochs(num_rows, batch_size):
    """Epochs of a run that nobody gave a length: 8, more on few rows, fewer on many.

    Eight passes over 3,000 template sentences are 744 steps of 32; see `TrainingRecipe.for_run`
    for what they reach. Runs have at least 400 steps, and no more than 3,000 where that is a
    whole epoch or more: these two bounds are a matter of patience, not measured.

    Args:
        num_rows: int. Rows of the training set.
        batch_size: int. Rows in a step.

    Returns:
        int >= 1.
    """
    num_rows = checks.integer("num_rows", num_rows, minimum=1)
    in_epoch = max(1, num_rows // checks.integer("batch_size", batch_size, minimum=1))
    steps = min(LONGEST_RUN, max(SHORTEST_RUN, USUAL_EPOCHS * in_epoch))
    return max(1, math.ceil(steps / in_epoch))


def schedule_of(optimizer):
    """The learning-rate schedule of an optimizer, or `None` where it has a number."""
    # Keras's public property gives the rate of the present step only.
    schedule = getattr(optimizer, "_learning_rate", None)
    return schedule if isinstance(schedule, WarmupSchedule) else None


def too_short(optimizer, steps):
    """Say why a run of `steps` is too short for an optimizer's settings, if it is.

    Args:
        optimizer: a `keras.optimizers.Optimizer`; its past steps count.
        steps: int. Optimizer steps that the run is going to take.

    Returns:
        str, a message for the user, or `None` where nothing is wrong or nothing is known.
    """
    steps = checks.integer("steps", steps, minimum=0)
    done = int(ops.convert_to_numpy(optimizer.iterations))
    problems = []
    schedule = schedule_of(optimizer)
    if schedule is not None:
        end = done + steps - schedule.first_step
        if end <= schedule.warmup_steps:
            problems.append(
                f"the learning rate is still warming up at its end (step {end} of "
                f"{schedule.warmup_steps}, {end / schedule.warmup_steps:.1%} of its peak)"
            )
    if getattr(optimizer, "use_ema", False) and hasattr(optimizer, "average_pairs"):
        left = optimizer.ema_momentum ** (done + steps)
        if left > MOST_OF_START:
            problems.append(
                f"the averaged weights, which `generate` uses, will still be {left:.0%} the first "
                f"ones (ema_momentum={optimizer.ema_momentum:g})"
            )
    if not problems:
        return None
    return (
        f"This run of {steps} optimizer steps is too short for its settings: "
        f"{', and '.join(problems)}. Call `compile()` without an optimizer for settings that suit "
        "the run, or see `keras_elf.TrainingRecipe.for_run`."
    )
