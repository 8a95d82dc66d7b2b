"""Checks of the arguments that all optimizers here have in common."""

import re

import keras

from keras_elf import checks


def base_arguments(
    learning_rate,
    clipnorm,
    clipvalue,
    global_clipnorm,
    use_ema,
    ema_momentum,
    loss_scale_factor,
    gradient_accumulation_steps,
    name,
):
    """Return checked keyword arguments for `keras.optimizers.Optimizer.__init__`.

    Raises:
        ValueError: naming the argument, what was received and what is allowed.
    """
    clips = {"clipnorm": clipnorm, "clipvalue": clipvalue, "global_clipnorm": global_clipnorm}
    clips = {key: positive(key, value, optional=True) for key, value in clips.items()}
    if sum(value is not None for value in clips.values()) > 1:
        raise ValueError(
            "Only one of `clipnorm`, `clipvalue` and `global_clipnorm` may be set; pass "
            f"`global_clipnorm=None` to use one of the others. Received: {clips}"
        )
    steps = gradient_accumulation_steps
    if steps is not None:
        steps = checks.integer("gradient_accumulation_steps", steps, minimum=1)
    if not isinstance(use_ema, bool):
        raise ValueError(f"`use_ema` must be True or False. Received: {use_ema!r}")
    return {
        "learning_rate": _learning_rate(learning_rate),
        "use_ema": use_ema,
        "ema_momentum": checks.probability("ema_momentum", ema_momentum),
        "loss_scale_factor": positive("loss_scale_factor", loss_scale_factor, optional=True),
        # Keras takes 2 and more only; one gradient a step is not accumulation.
        "gradient_accumulation_steps": None if steps == 1 else steps,
        "name": name,
        **clips,
    }


def positive(name, value, optional=False):
    """Return `value` as a `float` above zero (or `None` where `optional`)."""
    if optional and value is None:
        return None
    value = checks.number(name, value, minimum=0)
    if value == 0:
        raise ValueError(f"`{name}` must be above 0{' or None' if optional else ''}. Received: 0")
    return value


def decay_rate(name, value):
    """Return `value` as a `float` in [0, 1), the decay rate of a running average."""
    value = checks.probability(name, value)
    if value == 1:
        raise ValueError(f"`{name}` must be below 1: an average that never moves. Received: 1")
    return value


def weight_decay(name, value):
    """Return `value` as a `float` of at least zero, or `None` for no decay."""
    return None if value is None else checks.number(name, value, minimum=0)


def patterns(name, value):
    """Return `value` as a list of regular expressions that compile; `None` gives none."""
    if value is None:
        return []
    if isinstance(value, str) or not all(isinstance(pattern, str) for pattern in value):
        raise ValueError(f"`{name}` must be a list of strings. Received: {value!r}")
    for pattern in value:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(
                f"`{name}` must hold regular expressions. "
                f"Received: {pattern!r}, which does not compile: {error}"
            ) from None
    return list(value)


def _learning_rate(value):
    schedule = keras.optimizers.schedules.LearningRateSchedule
    if isinstance(value, schedule) or callable(value):
        return value
    try:
        return checks.number("learning_rate", value, minimum=0)
    except ValueError as error:
        raise ValueError(
            f"{error}. A `LearningRateSchedule` or a function without arguments is allowed too."
        ) from None
