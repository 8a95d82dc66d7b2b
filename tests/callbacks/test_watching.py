"""Samples, logs, the end of a run at a NaN, and interrupts."""

import csv
import json
import os
import signal
from contextlib import nullcontext

import numpy as np
import pytest
from keras import ops

from keras_elf.callbacks import (
    InterruptSafely,
    ResumableCheckpoint,
    SampleText,
    StopOnNaN,
    TrainingLog,
)
from tests.callbacks.runs import BATCHES, Curve, Poison
from tests.models import small


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def plain(_shared):
    """Two epochs without a callback of ours."""
    _shared.reset()
    curve = Curve()
    _shared.fit([curve])
    return curve, _shared.state()


def test_samples_and_logs_leave_training_alone(shared, plain, tmp_path):
    printed, curve = [], Curve()
    path = tmp_path / "texts.jsonl"
    callbacks = [
        SampleText(2, 2, path=path, print_fn=printed.append),
        TrainingLog(tmp_path / "log.csv", 1),
        StopOnNaN(1),
        curve,
    ]
    shared.fit(callbacks)
    assert curve.steps == plain[0].steps
    assert small.all_equal(shared.state(), plain[1])
    samples = lines(path)
    assert [sample["step"] for sample in samples] == [2, 4, 6, 8, 10]
    assert [sample["epoch"] for sample in samples] == [0, 0, 1, 1, 1]
    assert len(printed) == 5 and samples[-1]["texts"][1] in printed[-1]
    # The averages of the end wrote the last ones, and the raw weights write others.
    settings = {"num_samples": 2, "seed": 0, "verbose": False}
    assert shared.model.generate(**settings) == samples[-1]["texts"]
    assert shared.model.generate(**settings, use_averages=False) != samples[-1]["texts"]
    assert samples[0]["texts"] != samples[-1]["texts"]


def test_what_a_log_says(shared, plain, tmp_path):
    log = TrainingLog(tmp_path / "log.csv", 1, tmp_path / "events")
    shared.fit([log], validation_data={k: v[: small.BATCH] for k, v in shared.rows.items()})
    found = table(tmp_path / "log.csv")
    assert [int(row["step"]) for row in found] == list(range(1, 2 * BATCHES + 1))
    assert [int(row["batch"]) for row in found] == 2 * [*range(1, BATCHES + 1)]
    # On PyTorch the loader of the validation draws from the generator of the dropout.
    same = BATCHES if small.BACKEND == "torch" else 2 * BATCHES
    for row, (loss, denoise, decode) in zip(found[:same], plain[0].steps[:same], strict=True):
        assert float(row["loss"]) == loss
        assert float(row["denoise_loss"]) == denoise
        assert row["decode_loss"] in ("", repr(decode))
    for row in found:
        assert float(row["gradient_norm"]) > 0 and float(row["tokens_per_second"]) > 0
    rates = [float(row["learning_rate"]) for row in found]
    schedule = shared.model.optimizer._learning_rate
    expected = [float(ops.convert_to_numpy(schedule(step))) for step in range(2 * BATCHES)]
    np.testing.assert_array_equal(rates, expected)
    assert rates[0] < rates[3] < rates[-1]
    validated = [row["val_loss"] != "" for row in found]
    assert validated == 2 * ([False] * (BATCHES - 1) + [True])
    (events,) = (tmp_path / "events").iterdir()
    assert events.read_bytes().count(b"gradient_norm") == 2 * BATCHES


def test_events_as_tensorflow_reads_them(shared, tmp_path):
    if small.BACKEND != "tensorflow":
        pytest.skip("TensorFlow reads event files")
    import tensorflow as tf

    shared.fit([TrainingLog(None, 2, tmp_path)], epochs=1)
    (path,) = tmp_path.iterdir()
    events = [*tf.compat.v1.train.summary_iterator(str(path))]
    assert events[0].file_version == "brain.Event:2"
    # The start of a session, from which TensorBoard forgets what older files say of later steps.
    assert [event.step for event in events if event.session_log.status == 1] == [1]
    values = [(event.step, value.tag) for event in events for value in event.summary.value]
    assert sorted({step for step, _ in values}) == [2, 4, 5]
    tags = {tag for step, tag in values if step == 2}
    assert {"loss", "gradient_norm", "learning_rate", "tokens_per_second"} <= tags


def test_the_norm_is_that_of_the_gradient(shared, tmp_path):
    """With plain gradient descent in sight: the first change of the momentum tells."""
    shared.fit([TrainingLog(tmp_path / "log.csv", 1), Curve(1)], epochs=1)
    optimizer = shared.model.optimizer
    # After one step the first moment is (1 - beta) times the clipped gradient.
    moments = small.values(optimizer._momentums)
    clipped = np.sqrt(sum((m.astype("float64") ** 2).sum() for m in moments))
    norm = float(table(tmp_path / "log.csv")[0]["gradient_norm"])
    expected = min(norm, optimizer.global_clipnorm)
    np.testing.assert_allclose(clipped / (1 - optimizer.beta_1), expected, rtol=1e-4)


def test_logs_and_samples_of_a_resumed_run(shared, tmp_path):
    def callbacks(directory, stop=None, **kwargs):
        # Saved each fourth step, so that what came after it is trained and logged twice.
        return [
            TrainingLog(directory / "log.csv", 1),
            SampleText(1, 1, path=directory / "texts", print_fn=None, num_steps=1),
            ResumableCheckpoint(directory / "c", every_n_steps=4, **kwargs),
            Curve(stop, RuntimeError("boom")),
        ]

    shared.fit(callbacks(tmp_path / "whole"))
    shared.reset()
    with pytest.raises(RuntimeError, match="boom"):
        shared.fit(callbacks(tmp_path, stop=7))
    assert [int(row["step"]) for row in table(tmp_path / "log.csv")][-1] == 6
    shared.forget()
    shared.fit(callbacks(tmp_path, resume=True))
    timed = ("seconds", "tokens_per_second")
    whole, resumed = (
        [{k: v for k, v in row.items() if k not in timed} for row in table(path / "log.csv")]
        for path in (tmp_path / "whole", tmp_path)
    )
    assert whole == resumed and len(whole) == 2 * BATCHES
    one, other = ([s["texts"] for s in lines(p / "texts")] for p in (tmp_path / "whole", tmp_path))
    assert one == other and len(one) == 2 * BATCHES
    shared.reset()
    before = (tmp_path / "log.csv").read_bytes()
    with pytest.raises(ValueError, match="`TrainingLog`: .* holds records of another run"):
        shared.fit([TrainingLog(tmp_path / "log.csv", 1)])
    assert (tmp_path / "log.csv").read_bytes() == before


def test_samples_that_cannot_be(shared):
    for options, message in (
        ({"guidance_scale": float("nan")}, "`guidance_scale` must be"),
        ({"sampler": "euler"}, "euler"),
        ({"length": 0}, "`length` must be"),
        ({"inputs": []}, "`inputs` must hold at least one"),
        ({"inputs": ["x"], "length": 4}, "`length` must be the preprocessor's"),
    ):
        with pytest.raises(ValueError, match=message):
            shared.fit([SampleText(1, **options)])
    assert int(ops.convert_to_numpy(shared.model.optimizer.iterations)) == 0


def unembedding(model):
    return model.backbone.unembedding.trainable_variables[0]


def denoising(model):
    return model.backbone.denoising_head.trainable_variables[0]


@pytest.mark.parametrize("every", [1, 3])
def test_a_nan_in_the_denoising_head(shared, tmp_path, every):
    checkpoint = ResumableCheckpoint(tmp_path, every_n_steps=1, every_epoch=False)
    stop, poison = StopOnNaN(every), Poison(BATCHES + 1, denoising(shared.model))
    with pytest.raises(FloatingPointError) as error:
        with pytest.warns(match="Nothing was saved at step [78]") if every > 1 else nullcontext():
            shared.fit([stop, checkpoint, poison], epochs=3)
    message = str(error.value)
    # The seventh step is the second of the second epoch; the loss is the sum of its branches.
    assert "not finite at step 7 (epoch 1, batch 1), first denoise_loss" in message
    assert "\n" not in message
    assert stop.report["first"] == ["denoise_loss", "loss", "gradient_norm"]
    assert stop.report["found_at_step"] == (7 if every == 1 else 9)
    assert denoising(shared.model).path in stop.report["weights"]
    assert stop.report["weights"][0] in message and stop.report["optimizer_variables"]
    assert json.loads((tmp_path / "non-finite-step-7.json").read_text()) == stop.report
    # The newest checkpoint is from before, and the batch is the one that it would go on with.
    newest = ResumableCheckpoint(tmp_path)
    assert newest.restore(shared.model) == {"step": 6, "epoch": 1, "batch": 1}
    data = shared.batches(seed=1)
    data.skip_to(1)
    with np.load(tmp_path / "non-finite-step-7.npz") as batch:
        assert np.array_equal(batch["token_ids"], data[1]["token_ids"])
        assert set(batch) == {"token_ids", "is_cond", "is_valid"}
    assert f"Last good checkpoint: {newest.checkpoints()[-1]}" in message


def test_a_nan_that_ends_fit_quietly(shared, tmp_path, capsys):
    curve, stop = Curve(), StopOnNaN(1, tmp_path / "report", error=False)
    poison = Poison(1, unembedding(shared.model))
    shared.fit([poison, stop, curve], epochs=9, validation_data=shared.rows)
    assert len(curve.steps) < 2 * BATCHES
    assert "decode_loss" in stop.report["first"][0] and stop.report["step"] == 2
    printed = capsys.readouterr().out
    assert printed.count("Training stopped: not finite at step 2 (epoch 0, batch 1)") == 1
    assert sorted(p.name for p in (tmp_path / "report").iterdir()) == [
        "non-finite-step-2.json",
        "non-finite-step-2.npz",
    ]


def test_what_failed_first(shared):
    stop, optimizer = StopOnNaN(1), shared.model.optimizer
    seen = []

    class Fake(Curve):
        def on_train_batch_end(self, batch, logs=None):
            super().on_train_batch_end(batch, logs)
            if batch == 2:
                # As if the gradient had overflown in the second step and the losses after it.
                optimizer.first_nonfinite.assign(2)
                self.model.step_report.first_nonfinite.assign([3, 0, 3])
                seen.append(batch)

    with pytest.raises(FloatingPointError, match=r"step 2 \(epoch 0, batch 1\), first gradient_n"):
        shared.fit([Fake(), stop])
    assert seen == [2]
    assert stop.report["first_steps"] == {"gradient_norm": 2, "decode_loss": 3, "loss": 3}
    assert stop.report["weights"] == stop.report["optimizer_variables"] == []


class Signal(Curve):
    """Sends this process a signal within a step."""

    def __init__(self, at, number=signal.SIGINT, again=False):
        super().__init__()
        self.at, self.number, self.again = at, number, again

    def on_train_batch_begin(self, batch, logs=None):
        if len(self.steps) + 1 == self.at:
            os.kill(os.getpid(), self.number)
            if self.again:
                os.kill(os.getpid(), self.number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("at", [3, BATCHES])
def test_interrupts(shared, plain, tmp_path, number, at):
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    said, first = [], Signal(at, number)
    interrupt = InterruptSafely(said.append)
    checkpoint = ResumableCheckpoint(tmp_path, every_epoch=False, every_seconds=3600)
    history = shared.fit([interrupt, first, checkpoint], validation_data=shared.rows)
    assert len(first.steps) == at and interrupt.interrupted
    assert "val_loss" not in history.history
    assert handlers == [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    assert said[0].startswith("Finishing the step")
    assert f"step {at}; saved {checkpoint.checkpoints()[0]}" in said[1]
    assert f"ResumableCheckpoint('{tmp_path}', resume=True)" in said[1]
    shared.forget()
    second = Curve()
    shared.fit([second, ResumableCheckpoint(tmp_path, resume=True)])
    assert first.steps + second.steps == plain[0].steps


def test_a_second_interrupt_aborts(shared, tmp_path, interruptible):
    callbacks = [InterruptSafely(str), Signal(3, again=True), ResumableCheckpoint(tmp_path)]
    with pytest.raises(KeyboardInterrupt):
        shared.fit(callbacks)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not callbacks[-1].checkpoints()


def test_interrupts_need_a_checkpoint(shared):
    with pytest.raises(ValueError, match="needs a `ResumableCheckpoint`"):
        shared.fit([InterruptSafely()])
