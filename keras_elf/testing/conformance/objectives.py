"""What an objective must do for the training step and for evaluations."""

import keras
import numpy as np
from keras import ops

from keras_elf import flow
from keras_elf.objectives import RowSeedGenerator, check_parts, check_report
from keras_elf.testing.conformance import common
from keras_elf.testing.conformance.common import expect, expect_equal
from keras_elf.testing.conformance.denoisers import objective_batch
from keras_elf.testing.dummy_denoiser import DummyDenoiser
from keras_elf.testing.gradients import ValueAndGradients

ROWS = 8


def check_objective(objective, network=None):
    """Raise an error that says what is wrong where an objective does not keep the contract.

    What is checked: the names that training and sampling read; saving; draws that are made by
    `draw` alone and follow from the seed; a finite loss, where nothing counts as well; a report
    of the declared names; a gradient that reaches the network; evaluations in which neither the
    order of the rows matters nor how they are cut into batches.

    Args:
        objective: see `keras_elf.objectives.check_parts`.
        network: a small one. Defaults to a `DummyDenoiser` that reads the guidance scale.

    Raises:
        ValueError: where a name is missing or a report holds others than it says.
        AssertionError: for everything else.
    """
    check_parts(objective)
    name = type(objective).__name__
    _check_constants(objective, name)
    if network is None:
        network = DummyDenoiser(9, 4, 8, takes_guidance_scale=True)
    batch = objective_batch(network, ROWS)
    _check_draws(objective, name, batch)
    _check_loss(objective, name, network, batch)
    _check_evaluation(objective, name, network, batch)
    _check_saving(objective, name, network, batch)


def _check_constants(objective, name):
    expect(
        objective.prediction in flow.PREDICTIONS,
        f"`prediction` of {name} must be one of {flow.PREDICTIONS}: sampling reads what the "
        f"denoising head gives by it. Received: {objective.prediction!r}",
    )
    for part, low, high in (("noise_scale", 0.0, 1e6), ("min_time_gap", 1e-6, 1.0)):
        value = getattr(objective, part)
        expect(
            isinstance(value, (int, float)) and low <= value <= high,
            f"`{part}` of {name} must be a number from {low} to {high:g}: sampling reads it. "
            f"Received: {value!r}",
        )


def _draws(objective, batch, seed=3):
    return objective.draw(tuple(batch["clean"].shape), keras.random.SeedGenerator(seed))


def _check_draws(objective, name, batch):
    one, again, other = (_draws(objective, batch, seed) for seed in (3, 3, 4))
    tensors = [keras.tree.flatten(draws) for draws in (one, again, other)]
    for tensor in tensors[0]:
        expect(
            tuple(tensor.shape)[:1] == (ROWS,),
            f"All that `draw` of {name} returns must have the rows as its first axis. Received "
            f"shape: {tuple(tensor.shape)}, for {ROWS} rows",
        )
    same = all(common.apart(a, b) == 0 for a, b in zip(*tensors[:2], strict=True))
    expect(same, f"`draw` of {name} must follow from `seed` alone: hand it on to all that draws")
    differs = any(common.apart(a, b) > 0 for a, b in zip(tensors[0], tensors[2], strict=True))
    expect(
        differs or not tensors[0], f"`draw` of {name} gives the same for two seeds: hand `seed` on"
    )


def _checked(objective, name, network, batch, draws, training):
    report = objective(network, batch, draws, training=training)
    check_report(objective, report)
    common.expect_tensor(report["loss"], (), f"`loss` of {name}")
    for entry in objective.report_names:
        found = report[entry]
        expect(
            isinstance(found, (tuple, list)) and len(found) == 2,
            f"{entry!r} in the report of {name} must be a pair, the mean and how much was "
            f"measured. Received: {type(found).__name__}",
        )
        for part, value in zip(("mean", "weight"), found, strict=True):
            value = ops.convert_to_tensor(value)
            common.expect_tensor(value, (), f"The {part} of {entry!r} in the report of {name}")
        expect(common.array(found[1]) >= 0, f"The weight of {entry!r} in {name} is below 0")
    return report


def _check_loss(objective, name, network, batch):
    draws = _draws(objective, batch)
    for training in (False, True):
        one, again = (_checked(objective, name, network, batch, draws, training) for _ in range(2))
        expect_equal(
            one["loss"],
            again["loss"],
            f"The loss of {name} is not the same for the same draws: draw all in `draw`",
        )
        nothing = {**batch, "counts": ops.zeros_like(batch["counts"])}
        called = f"{name}, for a batch in which nothing counts,"
        _checked(objective, called, network, nothing, draws, training)
    variables = network.trainable_variables

    def loss(batch, draws):
        return objective(network, batch, draws, training=True)["loss"]

    _, gradients = ValueAndGradients(loss, variables)(batch, draws)
    finite = all(np.isfinite(g).all() for g in gradients)
    expect(finite, f"The gradient of {name} is not finite")
    expect(
        any(np.abs(g).max(initial=0.0) > 0 for g in gradients),
        f"No gradient of {name} reaches the network: its loss must depend on what the network "
        "gives, and not through `stop_gradient`",
    )


def _check_evaluation(objective, name, network, batch):
    def evaluated(batch, draws):
        return _checked(objective, name, network, batch, draws, False)

    seeds = RowSeedGenerator(0)
    with seeds.rows(ROWS):
        draws = objective.draw(tuple(batch["clean"].shape), seeds)
    whole = evaluated(batch, draws)
    order = np.random.default_rng(1).permutation(ROWS)

    def rows(nest, which):
        return keras.tree.map_structure(lambda x: ops.take(x, which, axis=0), nest)

    expect_equal(
        whole["loss"],
        evaluated(rows(batch, order), rows(draws, order))["loss"],
        f"The order of the rows changes the loss of {name} in an evaluation: with "
        "`training=False` each row must be taken by itself",
    )
    parts = [np.arange(3), np.arange(3, ROWS)]
    cut = [evaluated(rows(batch, part), rows(draws, part)) for part in parts]
    for entry in objective.report_names:
        total = sum(mean * weight for mean, weight in (report[entry] for report in cut))
        expect_equal(
            whole[entry][0] * whole[entry][1],
            total,
            f"{entry!r} of {name} depends on how the rows of an evaluation are cut into batches: "
            "its mean must be one over what its weight counts",
        )


def _check_saving(objective, name, network, batch):
    copy = common.copied(objective)
    draws = _draws(objective, batch)
    same = keras.tree.map_structure(common.apart, draws, _draws(copy, batch))
    expect(
        all(value == 0 for value in keras.tree.flatten(same)),
        f"{name} draws other numbers when it is made from its config",
    )
    expect_equal(
        _checked(objective, name, network, batch, draws, True)["loss"],
        _checked(copy, name, network, batch, draws, True)["loss"],
        f"{name} has another loss when it is made from its config",
    )
