"""A run that stops and goes on has the losses of one that never stopped, bit by bit."""

import shutil
import zipfile

import filelock
import keras
import numpy as np
import pytest
from keras import ops

from keras_elf.callbacks import ResumableCheckpoint, SampleText
from keras_elf.objectives import ELFObjective
from keras_elf.optimizers import AdamW, WarmupSchedule
from keras_elf.training.callbacks import state
from tests.callbacks import runs
from tests.callbacks.runs import BATCHES, DROPOUT, Curve
from tests.models import small

pytestmark = pytest.mark.filterwarnings("error:Your input ran out of data")


@pytest.fixture(scope="module")
def plain(_shared):
    """Two epochs without a callback of ours."""
    _shared.reset()
    curve = Curve()
    history = _shared.fit([curve])
    assert len(curve.steps) == 2 * BATCHES
    return curve, history.history, _shared.state()


def assert_same_state(model, one, other):
    variables = [*model.variables, *model.optimizer.variables]
    for variable, a, b in zip(variables, one, other, strict=True):
        assert (a == b).all(), variable.path


def test_a_checkpoint_changes_nothing(shared, plain, tmp_path):
    curve = Curve()
    history = shared.fit([curve, ResumableCheckpoint(tmp_path, every_n_steps=1)]).history
    assert curve.steps == plain[0].steps
    assert history == plain[1]
    assert_same_state(shared.model, shared.state(), plain[2])
    assert len({tuple(losses) for losses in curve.steps}) == 2 * BATCHES


@pytest.mark.parametrize("stop", [1, 3, BATCHES, 7, 2 * BATCHES])
def test_resume_equals_the_uninterrupted_run(shared, plain, tmp_path, stop):
    first = Curve(stop)
    shared.fit([first, ResumableCheckpoint(tmp_path)])
    shared.forget()
    second = Curve()
    history = shared.fit([second, ResumableCheckpoint(tmp_path, resume=True)])
    assert first.steps + second.steps == plain[0].steps
    assert first.means + second.means == plain[0].means
    assert (history.history, history.epoch) == (plain[1], [0, 1])
    assert_same_state(shared.model, shared.state(), plain[2])


@pytest.mark.parametrize("cut", [3, BATCHES])
def test_validation_of_a_stopped_epoch_does_no_harm(shared, tmp_path, cut):
    parts = []
    for stop, path in ((None, "whole"), (cut, "cut"), (None, "cut")):
        parts.append(Curve(stop))
        checkpoint = ResumableCheckpoint(tmp_path / path, resume=path == "cut")
        history = shared.fit([parts[-1], checkpoint], validation_data=shared.rows).history
        if len(parts) == 1:
            whole = history
        (shared.forget if len(parts) == 2 else shared.reset)()
    assert parts[1].steps + parts[2].steps == parts[0].steps
    assert parts[1].means + parts[2].means == parts[0].means
    assert history == whole


def test_resume_after_an_exception_and_with_a_dataset(shared, tmp_path):
    whole = Curve()
    shared.fit([whole, ResumableCheckpoint(tmp_path / "whole")], shared.batches(seed=4))
    shared.reset()
    first, second = Curve(4, RuntimeError("boom")), Curve()
    with pytest.raises(RuntimeError, match="boom"):
        # At the exception three steps are saved: the fourth had not begun to be kept.
        shared.fit([first, ResumableCheckpoint(tmp_path, every_n_steps=1)], shared.batches(seed=4))
    shared.forget()
    checkpoint = ResumableCheckpoint(tmp_path)
    assert checkpoint.restore(shared.model) == {"step": 3, "epoch": 0, "batch": 3}
    shared.fit([second, checkpoint], shared.batches(seed=4))
    assert first.steps[:3] + second.steps == whole.steps


class Skipping(keras.utils.PyDataset):
    """Any dataset whose position can be set."""

    def __init__(self, batches):
        super().__init__()
        self.batches, self.position = batches, {"epoch": 0, "batch": 0}

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, index):
        return self.batches[index]

    def skip_to(self, epoch, batch):
        self.batches.skip_to(epoch)
        self.position = {"epoch": epoch, "batch": batch}


def test_resume_with_positions_of_ones_own(shared, tmp_path):
    curves = []
    for stop, path in ((None, "whole"), (7, "cut"), (None, "cut")):
        curves.append(Curve(stop))
        data, checkpoint = Skipping(shared.batches()), ResumableCheckpoint(tmp_path / path)
        checkpoint.resume = len(curves) == 3
        shared.fit([curves[-1], checkpoint], data)
        (shared.forget if len(curves) == 2 else shared.reset)()
    assert curves[1].steps + curves[2].steps == curves[0].steps
    assert data.position == {"epoch": 2, "batch": 0}


def test_nothing_left_to_train(shared, plain, tmp_path):
    shared.fit([ResumableCheckpoint(tmp_path)])
    shared.forget()
    history = shared.fit([ResumableCheckpoint(tmp_path, resume=True)])
    assert history.history == plain[1]
    assert_same_state(shared.model, shared.state(), plain[2])


def test_every_generator_is_in_a_checkpoint():
    model = small.generator("gaussian", network=DROPOUT, label_drop_probability=0.1)
    generators = {id(layer.seed_generator.state) for layer in seeded(model)}
    assert len(generators) >= 3 + 2
    assert generators <= {id(v) for v in state.sections(model)["model"]}


def seeded(model):
    layers = [*model._flatten_layers()]
    return [layer for layer in layers if getattr(layer, "seed_generator", None) is not None]


def test_what_is_kept_and_when(shared, tmp_path):
    checkpoint = ResumableCheckpoint(tmp_path, every_n_steps=2, keep=2)
    shared.fit([checkpoint])
    assert [path.name[5:15] for path in checkpoint.checkpoints()] == ["0000000008", "0000000010"]
    assert checkpoint.last_saved == checkpoint.checkpoints()[-1]
    assert not list(tmp_path.glob("*.tmp")) and not list(tmp_path.glob(".*.tmp"))
    shared.reset()
    often = ResumableCheckpoint(tmp_path / "b", every_seconds=0, every_epoch=False, keep=99)
    shared.fit([often], epochs=1)
    assert len(often.checkpoints()) == BATCHES


@pytest.fixture(scope="module")
def saved(_shared, tmp_path_factory):
    _shared.reset()
    directory = tmp_path_factory.mktemp("saved")
    _shared.fit([ResumableCheckpoint(directory, every_n_steps=2, keep=9)], epochs=1)
    return directory


def other_sizes(shared):
    model = small.generator("gaussian", network={**runs.NETWORK, "hidden_size": 16})
    model.compile(optimizer=AdamW(1e-2))
    return model


def other_optimizer(shared):
    model = runs.generator()
    model.compile(optimizer=small.muon())
    return model


def other_rate(shared):
    model = runs.generator()
    schedule = WarmupSchedule(3e-2, warmup_steps=6)
    model.compile(optimizer=AdamW(schedule, ema_momentum=0.8))
    return model


def other_objective(shared):
    model = runs.generator()
    model.objective = ELFObjective(decode_probability=0.5)
    return model


MODELS = {
    other_sizes: "backbone.config.hidden_size: 8, here 16",
    other_optimizer: "class of optimizer: 'AdamW', here 'Muon'",
    other_rate: "optimizer.learning_rate.config.peak: 0.01, here 0.03",
    other_objective: "objective.config.decode_probability: 0.2, here 0.5",
}


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_refused_models(shared, saved, make):
    model = make(shared)
    before = small.values(model.variables)
    files = {path: path.read_bytes() for path in saved.glob("step*")}
    if make in (other_sizes, other_optimizer):
        with pytest.raises(ValueError, match="is of another (model|optimizer).*, here "):
            ResumableCheckpoint(saved, strict=False).restore(model)
    with pytest.raises(ValueError, match=MODELS[make]):
        ResumableCheckpoint(saved).restore(model)
    assert small.all_equal(before, small.values(model.variables))
    assert files == {path: path.read_bytes() for path in saved.glob("step*")}


def test_settings_may_change_where_that_is_wanted(saved):
    model = other_rate(None)
    found = ResumableCheckpoint(saved, strict=False).restore(model)
    assert found["step"] == BATCHES
    assert int(ops.convert_to_numpy(model.optimizer.iterations)) == BATCHES


def test_refused_files(shared, saved, tmp_path):
    for path in saved.glob("step*"):
        shutil.copy(path, tmp_path)
    newest = ResumableCheckpoint(tmp_path).checkpoints()[-1]
    whole = newest.read_bytes()
    newest.write_bytes(whole[:-200])
    before = shared.state()
    with pytest.raises(ValueError, match="To go on from .*0000000004.checkpoint instead"):
        shared.fit([ResumableCheckpoint(tmp_path, resume=True)])
    assert newest.read_bytes() == whole[:-200]
    with zipfile.ZipFile(newest, "w") as archive:
        archive.writestr("manifest.json", '{"format": 2, "keras_elf": "9.9", "dtypes": {}}')
    with pytest.raises(ValueError, match=r"newer keras_elf \(9.9"):
        shared.fit([ResumableCheckpoint(tmp_path, resume=True)])
    with zipfile.ZipFile(newest, "w") as archive:
        archive.writestr("manifest.json", '{"format": 1, "dtypes": {}}')
    with pytest.raises(ValueError, match="manifest lacks"):
        shared.fit([ResumableCheckpoint(tmp_path, resume=True)])
    with pytest.raises(ValueError, match="There is no checkpoint in"):
        ResumableCheckpoint(tmp_path / "nothing").restore(shared.model)
    with pytest.raises(ValueError, match="There is no checkpoint at"):
        ResumableCheckpoint(tmp_path).restore(shared.model, tmp_path / "nothing")
    assert small.all_equal(before, shared.state())


def test_refused_runs(shared, saved, tmp_path):
    def fit(checkpoint, x=None, **kwargs):
        return shared.fit([checkpoint], x, **kwargs)

    before = sorted(saved.iterdir())
    with pytest.raises(ValueError, match="holds checkpoints of an earlier run"):
        fit(ResumableCheckpoint(saved))
    again = ResumableCheckpoint(saved, resume=True)
    with pytest.raises(ValueError, match="other data: batch_size: 6, here 4"):
        fit(again, batch_size=4)
    shared.reset()
    ids = shared.rows["token_ids"][::-1].copy()
    with pytest.raises(ValueError, match="other data: rows: "):
        fit(again, {**shared.rows, "token_ids": ids})
    with pytest.raises(ValueError, match="`steps_per_epoch` must be None"):
        fit(ResumableCheckpoint(tmp_path), steps_per_epoch=2)
    with pytest.raises(ValueError, match="needs data whose position it can set"):
        fit(ResumableCheckpoint(tmp_path), iter([shared.rows]))
    with filelock.FileLock(tmp_path / ".lock"):
        with pytest.raises(ValueError, match="Another run is using"):
            fit(ResumableCheckpoint(tmp_path))
    plain = keras.Sequential([keras.layers.Dense(1)])
    plain.compile("sgd", "mse")
    with pytest.raises(ValueError, match="works in `ELFGenerator.fit` alone"):
        plain.fit(np.ones((2, 1)), np.ones((2, 1)), callbacks=[SampleText(1)], verbose=0)
    assert sorted(saved.iterdir()) == before


def test_one_object_serves_two_calls_of_fit(shared, tmp_path):
    checkpoint, whole, parts = ResumableCheckpoint(tmp_path), Curve(), Curve()
    shared.fit([parts, checkpoint], epochs=1)
    shared.fit([parts, checkpoint], epochs=2, initial_epoch=1)
    assert len(parts.steps) == 2 * BATCHES and len(checkpoint.checkpoints()) == 2
    shared.reset()
    shared.fit([whole])
    assert parts.steps[:BATCHES] == whole.steps[:BATCHES]
