"""The open report, and what a generator makes of it."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_elf import objectives
from keras_elf.configurable import Configurable
from keras_elf.objectives import ELFObjective, TimeBins, losses
from tests.models import small

IDS = np.random.default_rng(0).integers(3, small.VOCABULARY_SIZE, (16, 6)).astype("int32")
BINS = TimeBins(2).names


@keras.saving.register_keras_serializable(package="keras_elf_tests")
class TokenAccuracy(objectives.Term):
    names = ("accuracy",)

    def __call__(self, denoise, decode):
        right = ops.equal(
            ops.cast(ops.argmax(decode["logits"], axis=-1), "int32"),
            ops.cast(decode["token_ids"], "int32"),
        )
        return {"accuracy": objectives.mean_of(ops.cast(right, "float32"), decode["counts"])}


@keras.saving.register_keras_serializable(package="keras_elf_tests")
class SizePenalty(objectives.Term):
    names = ("size",)
    loss_weight = 0.5

    def __call__(self, denoise, decode):
        size = ops.mean(ops.square(denoise["predicted"]), axis=-1)
        return {"size": objectives.mean_of(size, denoise["counts"])}


@keras.saving.register_keras_serializable(package="keras_elf_tests")
class ReadingObjective(Configurable):
    """An objective of one's own: nothing but the decode branch, on `keras.random`."""

    report_names = ("reading",)
    prediction, noise_scale, min_time_gap = "x", 2.0, 0.05

    def __init__(self, noise=0.5):
        self.noise = noise

    def draw(self, shape, seed):
        return {"noise": keras.random.normal(shape, seed=seed)}

    def __call__(self, network, batch, draws, training=True):
        z = batch["clean"] + self.noise * draws["noise"]
        hidden = network.hidden_states(
            z,
            ops.ones_like(z[:, 0, 0]),
            self_condition=ops.zeros_like(z),
            guidance_scale=ops.ones_like(z[:, 0, 0]),
            decode=1.0,
            training=training,
        )
        entropy = losses.cross_entropy(network.unembedding(hidden), batch["token_ids"])
        mean, count = objectives.mean_of(entropy, batch["counts"])
        return {"loss": mean, "reading": (mean, count)}


def model_with(objective, **network):
    network = {"hidden_size": 8, **network}
    model = small.generator("gaussian", network=network, preprocessor=None, objective=objective)
    small.enliven(model, 0.1)
    model.compile(optimizer=keras.optimizers.SGD(0.001), jit_compile=small.BACKEND == "jax")
    return model


@pytest.fixture(scope="module")
def terms_model():
    return model_with(
        ELFObjective(
            self_conditioning_probability=0,
            # Times on both sides of a half.
            time_mean=0,
            terms=[TimeBins(2), TokenAccuracy(), SizePenalty()],
        )
    )


def test_fit_shows_what_terms_report(terms_model):
    model = terms_model
    logs = model.fit(IDS, batch_size=16, verbose=0).history
    assert set(logs) == {"loss", "denoise_loss", "decode_loss", *BINS, "accuracy", "size"}
    logs = {name: values[-1] for name, values in logs.items()}
    assert 0 <= logs["accuracy"] <= 1 and logs["size"] > 0
    low, high = sorted(logs[name] for name in BINS)
    assert low < logs["denoise_loss"] < high
    step = model.step_report.read()
    branches = ("denoise_loss", "decode_loss")
    # Without self-conditioned rows the branches are weighed by their positions.
    want = sum(step["weights"][n] * logs[n] for n in branches) / IDS.size + 0.5 * logs["size"]
    np.testing.assert_allclose(logs["loss"], want, rtol=1e-5)
    np.testing.assert_allclose([step[n] for n in logs], list(logs.values()), rtol=1e-5)
    assert sum(step["weights"][n] for n in BINS) == step["weights"]["denoise_loss"]
    assert set(step["first_nonfinite"]) == set(logs)


def test_bins_add_up_in_an_evaluation(terms_model):
    logs = terms_model.evaluate(IDS, batch_size=8, verbose=0, return_dict=True)
    model = terms_model.report_metrics
    counts = {metric.name: float(ops.convert_to_numpy(metric.count)) for metric in model.means}
    total = sum(logs[name] * counts[name] for name in BINS)
    np.testing.assert_allclose(total, logs["denoise_loss"] * counts["denoise_loss"], rtol=1e-5)
    assert counts["denoise_loss"] + counts["decode_loss"] == IDS.size


def test_what_was_never_measured_is_left_out(tmp_path):
    """A batch without a decode row has no decode loss, and not one of 0."""
    import keras_elf

    objective = ELFObjective(
        "per_example", decode_probability=1e-6, self_conditioning_probability=0
    )
    model = model_with(objective)
    log = keras_elf.callbacks.TrainingLog(tmp_path / "log.csv", every_n_steps=1)
    history = model.fit(IDS[:4], batch_size=4, verbose=0, callbacks=[log]).history
    assert set(history) == {"loss", "denoise_loss"}
    assert "decode_loss" not in model.step_report.read()
    header, line = (tmp_path / "log.csv").read_text().splitlines()[:2]
    line = dict(zip(header.split(","), line.split(","), strict=True))
    assert line["decode_loss"] == "" and float(line["denoise_loss"]) > 0
    # Row 0 of an evaluation decodes, rows 1 to 3 denoise.
    logs = model.evaluate(IDS[:1], batch_size=1, verbose=0, return_dict=True)
    assert set(logs) == {"loss", "decode_loss"} and logs["loss"] == logs["decode_loss"]


@pytest.mark.filterwarnings("ignore:Gradients do not exist")  # Nothing trains the other head.
def test_an_objective_of_ones_own():
    model = model_with(ReadingObjective(0.3))
    history = model.fit(IDS, batch_size=8, epochs=2, verbose=0).history
    assert set(history) == {"loss", "reading"}
    np.testing.assert_allclose(history["loss"], history["reading"], rtol=1e-5)
    logs = model.evaluate(IDS, batch_size=8, verbose=0, return_dict=True)
    assert set(logs) == {"loss", "reading"} and np.isfinite(logs["reading"])
    again = model.evaluate(IDS, batch_size=8, verbose=0, return_dict=True)
    assert again == logs
    saved = keras.saving.serialize_keras_object(model.objective)
    assert keras.saving.deserialize_keras_object(saved).noise == 0.3


def test_another_objective_of_a_compiled_model():
    model = model_with(ELFObjective(self_conditioning_probability=0))
    first = model.evaluate(IDS[:4], batch_size=4, verbose=0, return_dict=True)
    model.objective = ReadingObjective()
    second = model.evaluate(IDS[:4], batch_size=4, verbose=0, return_dict=True)
    assert set(first) == {"loss", "denoise_loss", "decode_loss"}
    assert set(second) == {"loss", "reading"}


class Silent(ReadingObjective):
    def __call__(self, *args, **kwargs):
        return {"loss": super().__call__(*args, **kwargs)["loss"]}


class Incomplete:
    report_names = ()

    def draw(self, shape, seed):
        return {}


class Taken(objectives.Term):
    names = ("reconstruction_accuracy",)


def test_objectives_that_cannot_serve():
    for objective, message in (
        (Incomplete(), "lacks .*'prediction'.*'__call__'"),
        ("published", "`objective` must be an ELFObjective"),
        (ELFObjective, "`objective` must be an ELFObjective"),
        (ELFObjective(terms=[TimeBins(2), TimeBins(2)]), "must be different names"),
        (ELFObjective(terms=[Taken()]), "names that the model's own figures have"),
    ):
        with pytest.raises(ValueError, match=message):
            small.generator("gaussian", preprocessor=None, objective=objective)
    model = model_with(Silent())
    with pytest.raises(ValueError, match=r"Missing: \['reading'\]"):
        model.evaluate(IDS[:2], batch_size=2, verbose=0)


@pytest.mark.parametrize("composition", objectives.COMPOSITIONS)
def test_signals_go_with_their_rows(composition):
    """Each pass hands the network the signal that belongs to the row, whatever the order."""
    rows, seen = 10, []
    labels = np.arange(rows, dtype="int32")
    # The latents say which row they are of, so that order and cut can be checked.
    clean = np.broadcast_to(labels[:, None, None], (rows, 2, 4)).astype("float32")

    class Network:
        signals = {"label": 0}

        def hidden_states(self, z, t, *, signals, guidance_scale, **kwargs):
            assert guidance_scale is None
            seen.append((ops.convert_to_numpy(z[:, 0, 0]), ops.convert_to_numpy(signals["label"])))
            return z

        def denoising_head(self, hidden):
            return hidden

        def unembedding(self, hidden):
            return hidden

    objective = ELFObjective(composition, noise_scale=0, decode_noise_scale=0, time_mean=50)
    draws = objective.draw((rows, 2, 4), keras.random.SeedGenerator(1))
    draws["decode_mix"] = ops.ones_like(draws["decode_mix"])
    batch = {
        "clean": ops.convert_to_tensor(clean),
        "token_ids": ops.zeros((rows, 2), "int32"),
        "is_cond": ops.zeros((rows, 2), "bool"),
        "counts": ops.ones((rows, 2)),
        "signals": {"label": ops.convert_to_tensor(labels)},
    }
    objective(Network(), batch, draws)
    assert [len(z) for z, _ in seen] == ([4, 10] if composition == "stratified" else [10, 10])
    for z, label in seen:
        np.testing.assert_allclose(z, label, atol=1e-5)
    assert sorted(seen[-1][1].tolist()) == labels.tolist()
    # A network without signals is given none.
    Network.signals = {}
    with pytest.raises(TypeError, match="signals"):
        objective(Network(), batch, draws)
