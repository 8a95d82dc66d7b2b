"""Twenty training steps of the public PyTorch code, followed draw by draw."""

import numpy as np
from keras import ops

from keras_elf.checkpoints import to_variables
from keras_elf.objectives import ELFObjective
from keras_elf.optimizers import Muon, WarmupSchedule
from tests.gradients import ValueAndGradients
from tests.objectives.reference_batches import draws_of, encode
from tests.reference_model import toy_backbone


def _batch(ref, step):
    ids, valid = ref["input_ids"][step], ref["is_valid"][step]
    mask = np.broadcast_to(valid[:, None, :], (*valid.shape, valid.shape[1]))
    clean = (encode(ref["encoder_table"], ids, mask) - ref["latent_mean"]) / ref["latent_std"]
    return {
        "clean": clean.astype("float32"),
        "token_ids": ids.astype("int32"),
        "is_cond": np.zeros(ids.shape, "float32"),
        "counts": valid.astype("float32"),
    }


def test_loss_curve_final_and_averaged_weights(reference):
    ref = reference("torch/train_trajectory")
    backbone = toy_backbone(reference("torch/pd_teacher_weights"))
    variables = backbone.trainable_variables
    objective = ELFObjective(composition="per_example")
    step = ValueAndGradients(
        lambda batch, draws: objective(backbone, batch, draws)["loss"], variables
    )
    optimizer = Muon(WarmupSchedule(2e-2, 5), ema_momentum=float(ref["ema_decay"]))
    optimizer.build(variables)
    losses = []
    for i in range(20):
        draws = draws_of({k: v[i] for k, v in ref.items() if k.startswith("draw/")})
        np.testing.assert_allclose(
            ops.convert_to_numpy(optimizer.learning_rate), ref["learning_rate"][i], rtol=1e-6
        )
        loss, gradients = step(_batch(ref, i), draws)
        optimizer.apply([ops.convert_to_tensor(g) for g in gradients], variables)
        losses.append(loss)
    np.testing.assert_allclose(losses, ref["loss"], rtol=1e-3)
    for prefix, values in (
        ("final/", {v.path: v for v in variables}),
        ("final_ema/", {v.path: a for v, a in optimizer.average_pairs()}),
    ):
        expected = {k.removeprefix(prefix): v for k, v in ref.items() if k.startswith(prefix)}
        for path, want in to_variables(expected).items():
            error = np.abs(ops.convert_to_numpy(values[path]) - want).max()
            assert error <= 2e-3 * np.abs(want).max(), (prefix, path, error)
