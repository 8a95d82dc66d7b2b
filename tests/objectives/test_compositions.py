"""Three ways to spread the branches over a batch: one expectation, different costs."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_elf.compiled import compiled
from keras_elf.models import ELFBackbone
from keras_elf.objectives import COMPOSITIONS, ELFObjective
from tests.gradients import ValueAndGradients
from tests.models.small import recorded_forwards

ROWS, LENGTH, WIDTH, VOCABULARY_SIZE = 12, 3, 4, 11
DRAWS = 120
# Narrow draws: what differs between the branches shall not drown in what they share.
NARROW = {"time_std": 0.1, "decode_std": 0.1, "min_guidance_scale": 3.0}


def batch_of(rows, seed=0):
    """Full rows: all positions count, as in packed unconditional training."""
    rng = np.random.default_rng(seed)
    return {
        "clean": rng.standard_normal((rows, LENGTH, WIDTH)).astype("float32"),
        "token_ids": rng.integers(0, VOCABULARY_SIZE, (rows, LENGTH)).astype("int32"),
        "is_cond": np.zeros((rows, LENGTH), "bool"),
        "counts": np.ones((rows, LENGTH), "float32"),
    }


@pytest.fixture(scope="module")
def network():
    """A network whose predictions depend strongly on their self-condition."""
    backbone = ELFBackbone(
        VOCABULARY_SIZE, WIDTH, depth=1, hidden_size=8, num_heads=1, bottleneck_dim=4
    )
    rng = np.random.default_rng(1)
    for variable in backbone.trainable_variables:
        if "self_cond_proj" in variable.path or "denoising_head" in variable.path:
            variable.assign(2.5 * rng.standard_normal(variable.shape).astype("float32"))
    return backbone


def _draws(objective):
    """Draws of `DRAWS` steps, made at once as those of one large batch."""
    rowwise = ELFObjective(**{**objective.get_config(), "composition": "per_example"})
    table = rowwise.draw((DRAWS * ROWS, LENGTH, WIDTH), keras.random.SeedGenerator(7))
    table = {k: np.array(ops.convert_to_numpy(v)) for k, v in table.items()}
    for i in range(DRAWS):
        draws = {k: v[i * ROWS : (i + 1) * ROWS] for k, v in table.items()}
        if objective.composition == "per_step":
            draws["is_decode"] = np.repeat(draws["is_decode"][:1], ROWS)
        yield draws


CHOSEN = ("self_cond_proj", "blocks_0/attn", "unembedding")


@pytest.fixture(scope="module")
def samples(network):
    """`composition -> (draws, 4)`: the loss and three projected gradients of each draw."""
    chosen = [
        next(v for v in network.trainable_variables if name in v.path and v.path.endswith("kernel"))
        for name in CHOSEN
    ]
    rng = np.random.default_rng(2)
    directions = [rng.standard_normal(v.shape) / np.sqrt(np.prod(v.shape)) for v in chosen]
    batch, steps, out = batch_of(ROWS), {}, {}
    for composition in COMPOSITIONS:
        objective = ELFObjective(composition, **NARROW)
        # Step and row compositions differ in their draws alone, so they share a function.
        kind = composition == "stratified"
        if kind not in steps:
            steps[kind] = ValueAndGradients(
                lambda draws, objective=objective: objective(network, batch, draws)["loss"], chosen
            )
        table = np.empty((DRAWS, 1 + len(chosen)))
        for i, draws in enumerate(_draws(objective)):
            loss, gradients = steps[kind](draws)
            table[i] = [loss, *(np.sum(g * d) for g, d in zip(gradients, directions, strict=True))]
        out[composition] = table
    return out


# Twelve rows are cut into 2, 5 and 5, not at 2.4 and 7.2: rounding must not show either.
# With a weight of the groups off by 0.2, or the branch's by 0.1, the gap is above 5 errors.
@pytest.mark.parametrize("one, other", [(0, 1), (0, 2), (1, 2)])
def test_expected_loss_and_gradients_agree(samples, one, other):
    one, other = (samples[COMPOSITIONS[i]] for i in (one, other))
    error = np.sqrt((one.var(axis=0) + other.var(axis=0)) / DRAWS)
    gap = np.abs(one.mean(axis=0) - other.mean(axis=0))
    assert (gap < 4 * error).all(), gap / error
    # The test sees something: draws do not drown what is compared.
    assert error[0] < 0.1 * one.mean(axis=0)[0]
    assert (one.std(axis=0) > 0).all()


def test_stratified_varies_less(samples):
    spread = {name: table.std(axis=0)[0] for name, table in samples.items()}
    assert spread["stratified"] < 0.9 * spread["per_example"] < 0.8 * spread["per_step"], spread


@pytest.fixture(scope="module")
def edges(network):
    """Reports and forward passes of objectives at the edge, compiled together."""
    objectives = {
        "stratified": (5, ELFObjective()),
        "per_example": (5, ELFObjective("per_example")),
        "two rows": (2, ELFObjective()),
        "two rows, per_example": (2, ELFObjective("per_example")),
        "no self-condition": (5, ELFObjective(self_conditioning_probability=0)),
        "always self-condition": (5, ELFObjective(self_conditioning_probability=1)),
        "all decode": (5, ELFObjective(decode_probability=1, self_conditioning_probability=0)),
        "no decode": (5, ELFObjective(decode_probability=0, self_conditioning_probability=0)),
    }
    draws = {
        # One seed for all: objectives of one shape draw the same noise, times and orders.
        name: objective.draw((rows, LENGTH, WIDTH), keras.random.SeedGenerator(3))
        for name, (rows, objective) in objectives.items()
    }
    forwards = {}

    def run(draws):
        reports = {}
        for name, (rows, objective) in objectives.items():
            with recorded_forwards(network) as calls:
                reports[name] = objective(network, batch_of(rows), draws[name])
            forwards[name] = [call["z"].shape[0] for call in calls]
        return reports

    # TensorFlow needs longer to compile all this once than to run it.
    eager = keras.backend.backend() == "tensorflow"
    reports = compiled(run, network.variables, eager=eager)(draws)
    reports = keras.tree.map_structure(lambda x: float(ops.convert_to_numpy(x)), reports)
    return reports, forwards, draws


def test_work_of_each_composition(edges):
    _, forwards, _ = edges
    assert forwards["per_example"] == [5, 5, 5]
    # 3F + 2 x 0.4F less the third: the passes without gradient see two rows of five.
    assert forwards["stratified"] == [2, 2, 5]
    assert forwards["no self-condition"] == [5]


def test_too_few_rows_for_three_groups(edges):
    reports, forwards, _ = edges
    assert reports["two rows"] == reports["two rows, per_example"]
    assert forwards["two rows"] == [2, 2, 2]
    assert np.isfinite(keras.tree.flatten(reports["two rows"])).all()


def test_probabilities_at_their_ends(edges):
    reports, _, draws = edges
    positions = 5 * LENGTH
    for name, decoding, denoising in (("all decode", positions, 0), ("no decode", 0, positions)):
        report = reports[name]
        (decode_loss, decode_count), (denoise_loss, denoise_count) = (
            report[f"{branch}_loss"] for branch in ("decode", "denoise")
        )
        assert (decode_count, denoise_count) == (decoding, denoising)
        np.testing.assert_allclose(report["loss"], decode_loss + denoise_loss, rtol=1e-6)
    used = {
        name: ops.convert_to_numpy(draws[name]["use_self_condition"])
        for name in ("no self-condition", "always self-condition")
    }
    assert not used["no self-condition"].any() and used["always self-condition"].all()
    assert (
        reports["no self-condition"]["denoise_loss"]
        != reports["always self-condition"]["denoise_loss"]
    )
    for report in reports.values():
        assert np.isfinite(keras.tree.flatten(report)).all()


def test_draws_of_a_step_are_one_branch():
    seeds = keras.random.SeedGenerator(0)
    objective = ELFObjective("per_step", decode_probability=0.5)
    branches = [
        ops.convert_to_numpy(objective.draw((4, 2, 3), seeds)["is_decode"]) for _ in range(30)
    ]
    assert all(b.all() or not b.any() for b in branches)
    assert 5 < sum(b.all() for b in branches) < 25


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(composition="mixed"), "`composition` must be one of .*'per_example'.*'mixed'"),
        (dict(composition="per_exampel"), "Did you mean 'per_example'"),
        (dict(decode_probability=1.2), r"`decode_probability` must be .*\[0, 1\].*1.2"),
        (dict(decode_probability=float("nan")), "`decode_probability` must be a finite"),
        (dict(self_conditioning_probability=-0.1), "`self_conditioning_probability` must be"),
        (dict(prediction="eps"), "`prediction` must be one of"),
        (dict(noise_scale=-1), "`noise_scale` must be"),
        (dict(time_std=float("inf")), "`time_std` must be a finite number"),
        (dict(min_guidance_scale=0), "`min_guidance_scale` must be"),
        (dict(min_guidance_scale=3, max_guidance_scale=2), "`max_guidance_scale` must be .*>= 3"),
        (dict(min_time_gap=0), "`min_time_gap` must be"),
        (dict(decode_probability="often"), "`decode_probability` must be"),
    ],
)
def test_refused_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        ELFObjective(**arguments)


def test_config_round_trip():
    objective = ELFObjective("per_step", decode_probability=0.3, prediction="v", time_mean=-1)
    config = keras.saving.serialize_keras_object(objective)
    assert config["registered_name"] == "keras_elf>ELFObjective"
    again = keras.saving.deserialize_keras_object(config)
    assert again.get_config() == objective.get_config()
