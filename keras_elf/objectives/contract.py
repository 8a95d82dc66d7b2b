"""What training and sampling ask of an objective, and an objective of a network."""

import keras
import numpy as np
from keras import ops

# Of the loss of an evaluation, and of `keras_elf.callbacks.ReconstructionAccuracy`.
RESERVED = ("evaluation_loss", "reconstruction_accuracy")
ATTRIBUTES = ("report_names", "prediction", "noise_scale", "min_time_gap")


def check_parts(objective):
    """Raise `ValueError` for an object that cannot serve as a generator's objective.

    An objective has `draw(shape, seed)`, `__call__(network, batch, draws, training=True)`,
    `report_names` (the names of its report besides `loss`), and, which sampling reads,
    `prediction`, `noise_scale` and `min_time_gap`. See `ELFObjective` for what they mean.
    """
    missing = [name for name in ATTRIBUTES if not hasattr(objective, name)]
    missing += [] if callable(getattr(objective, "draw", None)) else ["draw"]
    missing += [] if callable(objective) else ["__call__"]
    if isinstance(objective, (type, str)) or missing:
        raise ValueError(
            "`objective` must be an ELFObjective, or an object with `draw`, `__call__` and "
            f"{', '.join(f'`{name}`' for name in ATTRIBUTES)}. Received: {objective!r:.200}"
            + (f", which lacks {missing}" if missing else "")
        )
    names = list(objective.report_names)
    if "loss" in names or len(set(names)) != len(names):
        raise ValueError(
            "`objective.report_names` must be different names, without 'loss', which every "
            f"objective reports. Received: {names}"
        )
    taken = sorted(set(names) & set(RESERVED))
    if taken:
        raise ValueError(
            f"`objective.report_names` holds names that the model's own figures have: {taken}. "
            "Choose others"
        )


def check_report(objective, report):
    """Raise `ValueError` where a report holds other names than `report_names` says."""
    declared = {"loss", *objective.report_names}
    if set(report) != declared:
        raise ValueError(
            "An objective must report 'loss' and its `report_names`, no more and no less. "
            f"Missing: {sorted(declared - set(report))}, not declared: "
            f"{sorted(set(report) - declared)}"
        )
    for name in objective.report_names:
        found = report[name]
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise ValueError(
                f"{name!r} in the report of {type(objective).__name__} must be a pair, the mean "
                "and how much was measured; `keras_elf.objectives.mean_of` makes one. Received: "
                f"{type(found).__name__}"
            )


def check_times(sampler):
    """Raise `ValueError` where a `TimeSampler` gives other than times in [0, 1], one a row."""
    draws = sampler.draw((64,), keras.random.SeedGenerator(0))
    _check_numbers(sampler, "times", sampler.times(draws), 64, "times in [0, 1]", 1.0)


def check_weighting(weighting):
    """Raise `ValueError` where a `Weighting` gives other than finite weights >= 0, one a row."""
    times = ops.convert_to_tensor(np.linspace(0.0, 0.95, 20), "float32")
    _check_numbers(weighting, "weight", weighting.weight(times), 20, "finite weights >= 0", np.inf)


def _check_numbers(owner, method, numbers, rows, what, most):
    numbers = np.asarray(ops.convert_to_numpy(numbers))
    fits = numbers.shape == (rows,) and np.isfinite(numbers).all()
    if not fits or (numbers < 0).any() or (numbers > most).any():
        shown = f"shape {numbers.shape}"
        if numbers.shape == (rows,):
            shown = f"numbers from {numbers.min():.4g} to {numbers.max():.4g}"
        raise ValueError(
            f"`{method}` of {type(owner).__name__} must return {what}, one a row, shape ({rows},) "
            f"for {rows} rows. Received: {shown}"
        )
