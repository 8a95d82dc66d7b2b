"""Settings of the optimizer that `fit` has chosen itself, in a run that is resumed.

A second call of `fit` begins its schedule at the step that the first has reached. The process
that resumes it has not made those steps: there `fit` chose a schedule from the step that it
found. Where the run began is known to the checkpoint alone.
"""

from keras_elf.training.run_length import schedule_of

CHOSEN = ("learning_rate", "ema_momentum", "global_clipnorm")


def comparable(settings, chosen):
    """Settings without what a resumed run need not have, or cannot have yet.

    Args:
        settings: dict as of `state.settings`.
        chosen: bool. Whether `fit` has chosen the optimizer's settings already. The first step
            of the schedule is left out in any case.

    Returns:
        dict, a copy where something is left out.
    """
    optimizer = settings.get("optimizer")
    if not isinstance(optimizer, dict):
        return settings
    if not chosen:
        kept = {name: value for name, value in optimizer.items() if name not in CHOSEN}
        return {**settings, "optimizer": kept}
    rate = optimizer.get("learning_rate")
    if _first_step(rate) is None:
        return settings
    config = {name: value for name, value in rate["config"].items() if name != "first_step"}
    rate = {**rate, "config": config}
    return {**settings, "optimizer": {**optimizer, "learning_rate": rate}}


def begin_where_the_run_began(optimizer, settings):
    """Have an optimizer's schedule begin at the step at which that of `settings` began.

    Call it before the training step is compiled. Nothing happens where one of the two has no
    `WarmupSchedule`.

    Args:
        optimizer: a `keras.optimizers.Optimizer`.
        settings: dict as of `state.settings`, of the run that was saved.
    """
    schedule = schedule_of(optimizer)
    first = _first_step((settings.get("optimizer") or {}).get("learning_rate"))
    if schedule is not None and first is not None:
        schedule.first_step = first


def _first_step(rate):
    config = rate.get("config") if isinstance(rate, dict) else None
    return config.get("first_step") if isinstance(config, dict) else None
