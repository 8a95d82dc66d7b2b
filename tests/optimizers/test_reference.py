"""Trajectories and learning rates printed by the public ELF code."""

import keras
import numpy as np
import pytest

from keras_elf.optimizers import AdamW, Muon, WarmupSchedule
from tests.optimizers.stepping import compiled_step, values_of, variables_from, worst_error


def follow(arrays, optimizer):
    """Feed a recorded run's gradients; return the largest error of any weight at any step."""
    init = {k.removeprefix("init/"): a for k, a in arrays.items() if k.startswith("init/")}
    variables = variables_from(init)
    step = compiled_step(optimizer, variables)
    worst = 0.0
    for i in range(6):
        step([arrays[f"step{i}/grad/{name}"] for name in init])
        want = [arrays[f"step{i}/param/{name}"] for name in init]
        worst = max(worst, worst_error(values_of(variables), want))
    return worst


@pytest.mark.parametrize(("name", "clip"), [("muon_clip1", 1.0), ("muon_noclip", None)])
def test_muon_trajectory(reference, name, clip):
    arrays = reference(f"jax/optimizer_{name}")
    schedule = WarmupSchedule(2e-3, warmup_steps=3)
    rates = [float(schedule(i)) for i in range(6)]
    np.testing.assert_allclose(rates, arrays["lr"], rtol=1e-6)
    assert follow(arrays, Muon(schedule, global_clipnorm=clip)) < 1e-6


def test_adamw_trajectory(reference):
    arrays = reference("jax/optimizer_adamw")
    assert follow(arrays, AdamW(1e-3, weight_decay=0.01)) < 1e-6


def test_stock_muon_does_not_follow(reference):
    """What the subclass is for: were it equal to stock Keras, it could go."""
    arrays = reference("jax/optimizer_muon_clip1")
    stock = keras.optimizers.Muon(WarmupSchedule(2e-3, 3), weight_decay=None, global_clipnorm=1.0)
    assert follow(arrays, stock) > 1e-4


@pytest.mark.parametrize("decay", ["constant", "cosine"])
def test_learning_rates(reference, decay):
    arrays = reference("jax/schedules")
    ends = {} if decay == "constant" else {"total_steps": 100, "final": 1e-4}
    schedule = WarmupSchedule(2e-3, 10, decay=decay, **ends)
    got = keras.ops.convert_to_numpy(schedule(keras.ops.convert_to_tensor(arrays["lr_steps"])))
    np.testing.assert_allclose(got, arrays[f"lr_{decay}"], rtol=2e-6, atol=1e-10)
