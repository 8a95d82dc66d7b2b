"""Files that callbacks write and read, and arguments that they refuse: no model needed."""

import io
import json
import os
import struct
import sys
import warnings
import zipfile

import keras
import numpy as np
import pytest

from keras_elf.callbacks import (
    InterruptSafely,
    ResumableCheckpoint,
    SampleText,
    StopOnNaN,
    TrainingLog,
)
from keras_elf.training import RunClock
from keras_elf.training.callbacks import archive
from keras_elf.training.callbacks.records import RecordFile
from keras_elf.training.callbacks.training_log import _writer

pytestmark = pytest.mark.backend_free

ARRAYS = {
    "model/00000:a/kernel": np.arange(6, dtype="float32").reshape(2, 3),
    "model/00001:seed": np.array([1, 2], "uint32"),
    "optimizer/00000:iteration": np.array(7, "int64"),
}


@pytest.fixture
def files(tmp_path):
    """A file, a directory, and a path that is nothing yet."""
    (tmp_path / "file").write_text("x")
    (tmp_path / "directory").mkdir()
    return tmp_path


REFUSED = {
    "empty directory": (lambda f: ResumableCheckpoint(""), "`directory` must be a path"),
    "directory is a number": (lambda f: ResumableCheckpoint(3), "`directory` must be a path"),
    "directory is a file": (lambda f: ResumableCheckpoint(f / "file"), "Received the file"),
    "every_n_steps=0": (lambda f: ResumableCheckpoint(f, every_n_steps=0), "whole number >= 1"),
    "every_n_steps=1.5": (lambda f: ResumableCheckpoint(f, every_n_steps=1.5), "whole number"),
    "every_seconds<0": (lambda f: ResumableCheckpoint(f, every_seconds=-1), "finite number >= 0"),
    "every_seconds=nan": (
        lambda f: ResumableCheckpoint(f, every_seconds=float("nan")),
        "finite number",
    ),
    "never": (lambda f: ResumableCheckpoint(f, every_epoch=False), "nothing would ever be saved"),
    "keep=0": (lambda f: ResumableCheckpoint(f, keep=0), "`keep` must be a whole number"),
    "resume='yes'": (lambda f: ResumableCheckpoint(f, resume="yes"), "`resume` must be one of"),
    "no target": (lambda f: TrainingLog(), "`path` and `tensorboard` must be given"),
    "log every 0": (lambda f: TrainingLog(f / "log", every_n_steps=0), "whole number >= 1"),
    "log is a directory": (lambda f: TrainingLog(f / "directory"), "Received the directory"),
    "log is a number": (lambda f: TrainingLog(7), "`path` must be a path"),
    "events in a file": (lambda f: TrainingLog(tensorboard=f / "file"), "Received the file"),
    "sample every 0": (lambda f: SampleText(0), "`every_n_steps` must be"),
    "num_samples=0": (lambda f: SampleText(1, 0), "`num_samples` must be"),
    "seed=-1": (lambda f: SampleText(1, seed=-1), "`seed` must be"),
    "num_steps=0": (lambda f: SampleText(1, num_steps=0), "`num_steps` must be"),
    "print_fn=3": (lambda f: SampleText(1, print_fn=3), "`print_fn` must be a function"),
    "references alone": (lambda f: SampleText(1, references=["a"]), "`references` must be a list"),
    "fewer references": (
        lambda f: SampleText(1, inputs=["a", "b"], references=["a"]),
        "`references` must be a list",
    ),
    "samples nowhere": (lambda f: SampleText(1, print_fn=None), "must be given"),
    "samples in a directory": (lambda f: SampleText(1, path=f / "directory"), "must be a file"),
    "look every 0": (lambda f: StopOnNaN(0), "`every_n_steps` must be"),
    "report in a file": (lambda f: StopOnNaN(directory=f / "file"), "Received the file"),
    "report in a number": (lambda f: StopOnNaN(directory=1), "`directory` must be a path"),
    "error='no'": (lambda f: StopOnNaN(error="no"), "`error` must be one of"),
    "interrupt hints 1": (lambda f: InterruptSafely(hint=1), "`hint` must be a str"),
    "interrupt prints 1": (lambda f: InterruptSafely(1), "`print_fn` must be a function"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_arguments(files, case):
    make, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        make(files)


def test_no_callback_makes_the_host_wait_at_each_step():
    # Where one does, Keras converts the losses to Python numbers after every step.
    plain = keras.callbacks.Callback
    for callback in (InterruptSafely, ResumableCheckpoint, SampleText, StopOnNaN, TrainingLog):
        assert callback.on_train_batch_end is plain.on_train_batch_end
        assert callback.on_batch_end is plain.on_batch_end
    assert RunClock.on_train_batch_end is plain.on_train_batch_end


def test_unknown_option_of_sample_text():
    with pytest.raises(TypeError, match="temperature"):
        SampleText(1, temperature=0.5)


def test_configurations_come_back(tmp_path):
    for callback in (
        ResumableCheckpoint(tmp_path, every_n_steps=3, keep=2, resume=True),
        TrainingLog(tmp_path / "log.csv", 5, tmp_path / "events"),
        SampleText(7, 3, seed=4, path=tmp_path / "texts", num_steps=2),
        StopOnNaN(4, tmp_path, error=False),
        InterruptSafely(hint="elf --again"),
    ):
        config = callback.get_config()
        assert type(callback)(**config).get_config() == config


def test_archive_round_trip(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    arrays = {**ARRAYS, "model/00002:half": np.array([1.5, -2], ml_dtypes.bfloat16)}
    archive.write(tmp_path / "a", {"step": 3}, arrays)
    manifest, found = archive.read(tmp_path / "a")
    assert manifest["step"] == 3 and list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and np.array_equal(found[name], array)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_failed_write_leaves_the_last_one(tmp_path):
    archive.write(tmp_path / "a", {"step": 1}, ARRAYS)
    before = (tmp_path / "a").read_bytes()
    with pytest.raises(ValueError):
        archive.write(tmp_path / "a", {"step": 2}, {"b": np.array([object()])})
    assert (tmp_path / "a").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_any_flipped_byte_of_an_array_is_found(tmp_path):
    archive.write(tmp_path / "a", {"step": 1}, ARRAYS)
    whole = (tmp_path / "a").read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.choice(len(whole), 60, replace=False):
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        (tmp_path / "b").write_bytes(damaged)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of names that occur twice
                manifest, found = archive.read(tmp_path / "b")
        except archive.Damaged as error:
            assert "\n" not in str(error)
        else:  # A date or the like, which says nothing.
            assert manifest["step"] == 1
            assert all(np.array_equal(found[name], array) for name, array in ARRAYS.items())


@pytest.mark.parametrize("size", [0, 10, 300, -1])
def test_cut_archives_are_found(tmp_path, size):
    archive.write(tmp_path / "a", {}, ARRAYS)
    (tmp_path / "a").write_bytes((tmp_path / "a").read_bytes()[:size])
    with pytest.raises(archive.Damaged, match="damaged"):
        archive.read(tmp_path / "a")


def _zip(**entries):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in entries.items():
            file.writestr(name.replace("_", "."), content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"PK\x03\x04 and nothing",
        _zip(a_npy=b"x"),
        _zip(manifest_json=b"[]"),
        _zip(manifest_json=b"{"),
        _zip(manifest_json=b'{"dtypes": {"a": "float32"}}'),
        _zip(manifest_json=b'{"dtypes": {"a": "float32"}}', a_npy=b"\x93NUMPY junk"),
    ],
)
def test_what_is_no_checkpoint(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(archive.Damaged, match="damaged or no checkpoint"):
        archive.read(tmp_path / "a")


def test_missing_checkpoint_and_directory(tmp_path):
    with pytest.raises(ValueError, match="There is no checkpoint at"):
        archive.read(tmp_path / "a")
    with pytest.raises(ValueError, match="A checkpoint is a file"):
        archive.read(tmp_path)


@pytest.mark.parametrize("columns", [None, ("step", "text")])
def test_records_of_a_resumed_run(tmp_path, columns):
    path = tmp_path / "deep" / "records"
    file = RecordFile(path, columns)
    file.open(0, False, "Log")
    for step in (1, 2, 3):
        file.append({"step": step, "text": f'"ä",\n{step}'.replace("\n", " ")})
    file.close()
    with open(path, "a") as broken:
        broken.write('{"st' if columns is None else '4,"ha')
    before = path.read_text()
    with pytest.raises(ValueError, match="records of another run"):
        RecordFile(path, columns).open(1, False, "Log")
    assert path.read_text() == before
    file = RecordFile(path, columns)
    file.open(2, True, "Log")
    file.append({"step": 3, "text": "again"})
    file.close()
    lines = path.read_text().splitlines()[0 if columns is None else 1 :]
    assert len(lines) == 3 and "again" in lines[2] and "ä" in lines[1]


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        (b"step,other\n1,2\n", ("step", "text"), "other columns"),
        (b"step,text\nx,2\n", ("step", "text"), "line 1 is not a record"),
        (b"\xff\xfe\n", None, "not text in UTF-8"),
        (b"not json\n", None, "line 1 is not a record"),
        (b'{"epoch": 3}\n', None, "line 1 is not a record"),
        (b"[]\n", None, "line 1 is not a record"),
    ],
)
def test_files_that_are_no_records(tmp_path, content, columns, message):
    path = tmp_path / "a"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        RecordFile(path, columns).open(5, True, "Log")
    assert path.read_bytes() == content


def test_records_into_a_pipe_and_through_a_link(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDWR | os.O_NONBLOCK)
    (tmp_path / "real").write_text('{"step": 1}\n{"step": 3}\n')
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for name in ("pipe", "link"):
        records = RecordFile(tmp_path / name)
        records.open(2, True, "SampleText")
        records.append({"step": 3, "texts": []})
        records.close()
    line = '{"step": 3, "texts": []}\n'
    assert os.read(reader, 99).decode() == line
    os.close(reader)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == '{"step": 1}\n' + line


def test_event_files_hold_what_the_log_holds(tmp_path):
    """A resumed run's file makes TensorBoard forget the steps that it trains again."""
    from tensorboardX.proto.event_pb2 import Event

    writer = _writer()(str(tmp_path), purge_step=6)
    writer.add_scalar("loss", 0.5, 300)
    writer.close()
    (file,) = tmp_path.iterdir()
    data, events = file.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        events.append(Event.FromString(data[12 : 12 + length]))
        data = data[16 + length :]
    assert [e.step for e in events if e.session_log.status] == [6]
    scalar = next(e for e in events if e.summary.value)
    assert (scalar.step, scalar.summary.value[0].tag) == (300, "loss")
    assert scalar.summary.value[0].simple_value == 0.5


def test_without_tensorboardx_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ImportError, match=r'pip install "keras-elf\[tensorboard\]"'):
        TrainingLog(tensorboard=tmp_path)


def test_texts_with_line_ends_of_other_kinds_are_read_back(tmp_path):
    records = RecordFile(tmp_path / "texts.jsonl")
    records.open(0, False, "Log")
    records.append({"step": 1, "text": "one\u2028two\u0085three\u2029"})
    records.close()
    again = RecordFile(tmp_path / "texts.jsonl")
    again.open(1, True, "Log")
    again.append({"step": 2, "text": "four"})
    again.close()
    lines = (tmp_path / "texts.jsonl").read_text(encoding="utf-8").split("\n")
    assert [json.loads(line)["step"] for line in lines if line] == [1, 2]
