"""Loss and gradients of one training step against the public JAX and PyTorch code."""

import numpy as np
import pytest

from keras_elf.checkpoints import to_variables
from keras_elf.objectives import ELFObjective
from tests.gradients import ValueAndGradients
from tests.objectives.reference_batches import batch_of
from tests.reference_model import toy_backbone

JAX_CASES = ["uncond_denoise", "uncond_decode", "cond_denoise", "cond_drop_denoise"]
CASES = [f"jax/train_{case}" for case in [*JAX_CASES, "cond_drop_decode"]] + [
    "torch/train_mixed_uncond",
    "torch/train_mixed_cond_drop",
]


@pytest.fixture(scope="module")
def steps():
    """One compiled step for each (weights, composition), shared by the cases."""
    return {}


def _step(steps, reference, weights, composition):
    if weights not in steps:
        backbone = toy_backbone(reference(weights))
        objective = ELFObjective(composition=composition)
        steps[weights] = ValueAndGradients(
            lambda batch, draws: objective(backbone, batch, draws)["loss"],
            backbone.trainable_variables,
        )
    return steps[weights]


@pytest.mark.parametrize("case", CASES)
def test_loss_and_gradients(reference, steps, case):
    ref = reference(case)
    drop = ref["label_drop_prob"] > 0 if "label_drop_prob" in ref else True
    batch, draws, before_drop = batch_of(ref, label_drop=drop)
    if "x0" in ref:
        np.testing.assert_allclose(before_drop, ref["x0"], atol=2e-5)
    if case.startswith("jax"):
        step = _step(steps, reference, "jax/weights", "per_step")
    else:
        step = _step(steps, reference, "torch/pd_teacher_weights", "per_example")
    loss, gradients = step(batch, draws)
    np.testing.assert_allclose(loss, ref["loss"], rtol=2e-5)

    expected = to_variables(
        {k.removeprefix("grad/"): v for k, v in ref.items() if k.startswith("grad/")}
    )
    assert len(expected) == len(step.variables)
    scale = max(np.abs(g).max() for g in expected.values())
    for variable, gradient in zip(step.variables, gradients, strict=True):
        want = expected[variable.path]
        # Rounding noise of a tensor whose gradient is nearly zero is not held against itself.
        allowed = 2e-4 * max(np.abs(want).max(), 1e-3 * scale)
        assert np.abs(gradient - want).max() <= allowed, variable.path
