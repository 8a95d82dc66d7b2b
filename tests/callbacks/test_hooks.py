"""The hooks of a run, as a user's own callback sees them, and data of a user's own."""

import json

import keras
import numpy as np
import pytest

from keras_elf.callbacks import FitCallback, InterruptSafely, ResumableCheckpoint
from keras_elf.data import ResumableDataset, TokenBatches
from tests.callbacks.runs import BATCHES, Curve
from tests.models import small


class Told(FitCallback):
    """Writes down what it is told."""

    def __init__(self):
        super().__init__()
        self.said = []

    def before_fit(self, run):
        self.said.append(("fit", run.model.optimizer is not None, run.settings["epochs"]))
        self.seen = run

    def after_step(self, before, step):
        self.said.append(("step", before, step, self.clock.epoch, self.clock.batch))

    def before_validation(self, run):
        self.said.append(("validation", run is self.run, self.clock.epoch))

    def after_fit(self, run):
        self.said.append(("end", self.clock.step))


def test_what_a_callback_is_told(shared):
    told = Told()
    shared.fit([told], validation_data=shared.rows)
    # The last step of an epoch is told of when it ends, after its validation.
    steps = [("step", n, n + 1, n // BATCHES, n % BATCHES + 1) for n in range(2 * BATCHES)]
    first, second = ("validation", True, 0), ("validation", True, 1)
    steps = [*steps[: BATCHES - 1], first, *steps[BATCHES - 1 : -1], second, steps[-1]]
    assert told.said == [("fit", True, 2), *steps, ("end", 2 * BATCHES)]
    assert told.run is None and told.seen.find(Told) is told
    assert told.seen.find(InterruptSafely) is None


def test_a_validation_of_ones_own_is_not_that_of_fit(shared):
    class Evaluating(Told):
        def on_epoch_end(self, epoch, logs=None):
            self.model.evaluate(shared.rows, batch_size=small.BATCH, verbose=0)
            super().on_epoch_end(epoch, logs)

    told = Evaluating()
    shared.fit([told], epochs=1)
    assert not [said for said in told.said if said[0] == "validation"]


@pytest.mark.parametrize("skip", [True, False])
def test_stop(shared, skip):
    class Stop(Told):
        def after_step(self, before, step):
            if step == 2:
                self.run.stop(skip_validation=skip)

    stop, curve = Stop(), Curve()
    history = shared.fit([curve, stop], epochs=5, validation_data=shared.rows).history
    # Keras has announced the third step by the time that the second one's end is told.
    assert len(curve.steps) == 3
    assert ("val_loss" in history) is not skip
    assert bool([said for said in stop.said if said[0] == "validation"]) is not skip


def test_what_before_fit_changes_counts(shared):
    class Change(FitCallback):
        def before_fit(self, run):
            run.settings["epochs"] = 1
            run.data = shared.batches(seed=7)

    curve = Curve()
    shared.fit([Change(), curve], epochs=3)
    assert len(curve.steps) == BATCHES


def test_a_hook_that_fails_leaves_nothing_behind(shared, tmp_path):
    class Fails(FitCallback):
        def before_fit(self, run):
            raise RuntimeError("no")

    told, late = Told(), Told()
    for _ in range(2):  # Twice: the first has let go of the directory's lock.
        with pytest.raises(RuntimeError, match="no"):
            shared.fit([told, ResumableCheckpoint(tmp_path), Fails(), late])
    assert [said[0] for said in told.said] == ["fit", "end"] * 2
    assert told.run is None and late.said == []


class Counted(ResumableDataset):
    """The example of the base class: three definitions."""

    batches_per_epoch = 4

    def __init__(self, seed=0):
        super().__init__()
        self.seed, self.served = seed, []

    def batch_of(self, epoch, batch):
        self.served.append((epoch, batch))
        rng = np.random.default_rng([self.seed, epoch, batch])
        shape = (small.BATCH, small.LENGTH)
        ids = rng.integers(0, small.VOCABULARY_SIZE, shape).astype("int32")
        return {"token_ids": ids, "is_cond": ids < 0, "is_valid": ids >= 0}

    def fingerprint(self):
        return {"kind": "counted", "seed": self.seed}


def test_data_of_ones_own_go_on(shared, tmp_path):
    curves = []
    for stop, path in ((None, "whole"), (6, "cut"), (None, "cut")):
        curves.append(Curve(stop))
        data, checkpoint = Counted(), ResumableCheckpoint(tmp_path / path)
        checkpoint.resume = len(curves) == 3
        shared.fit([curves[-1], checkpoint], data)
        if len(curves) == 2:
            assert data.position == {"epoch": 1, "batch": 2}
        (shared.forget if len(curves) == 2 else shared.reset)()
    assert curves[1].steps + curves[2].steps == curves[0].steps
    assert data.position == {"epoch": 2, "batch": 0}
    with pytest.raises(ValueError, match="other data: seed: 0, here 1"):
        shared.fit([ResumableCheckpoint(tmp_path / "cut", resume=True)], Counted(seed=1))


def test_fit_starts_where_the_data_stand_and_leaves_them_where_it_ends(shared):
    data = Counted()
    data.skip_to(2, 3)
    shared.fit([], data, epochs=2)
    served = [place for n, place in enumerate(data.served) if place not in data.served[:n]]
    assert [(2, 3), *((3, n) for n in range(4))] == [p for p in served if p >= (2, 3)]
    assert data.position == {"epoch": 4, "batch": 0}


@pytest.mark.parametrize("kind", ["tokens", "own"])
def test_state_survives_json(shared, kind):
    def make(seed):
        return Counted(seed) if kind == "own" else TokenBatches(shared.rows, small.BATCH, seed=seed)

    data, again = make(0), make(0)
    data.skip_to(3, 2)
    again.restore(json.loads(json.dumps(data.state())))
    assert again.position == {"epoch": 3, "batch": 2}
    one, other = next(iter(data))["token_ids"], again.batch_of(3, 2)["token_ids"]
    assert np.array_equal(one, other)
    with pytest.raises(ValueError, match="another dataset: its seed is 0, here it is 1"):
        make(1).restore(data.state())


def test_what_a_dataset_lacks():
    class Empty(ResumableDataset):
        batches_per_epoch = 2

    with pytest.raises(NotImplementedError, match="Empty must define `batch_of"):
        Empty()[0]
    with pytest.raises(NotImplementedError, match="Empty must define `fingerprint"):
        Empty().state()
    with pytest.raises(ValueError, match="`batches_per_epoch` must be"):
        len(ResumableDataset())


def test_a_model_without_what_a_callback_needs():
    from keras_elf.callbacks import SampleText
    from keras_elf.training import FitRun

    class Plain(keras.Sequential):
        def fit(self, x, callbacks=None, **settings):
            return FitRun(self, x, callbacks, settings).fit()

    model = Plain([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="`SampleText` needs a model with `check_sampling`"):
        model.fit(np.ones((2, 1)), y=np.ones((2, 1)), callbacks=[SampleText(1)], verbose=0)
