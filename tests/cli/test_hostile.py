"""What people and systems do to a command: one line, code 2, nothing lost, nothing left."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import warnings

import pytest

from keras_elf.cli import building, files, info
from keras_elf.cli.main import main
from keras_elf.cli.plan import make_plan
from tests.data.small import verses
from tests.models import small

pytestmark = pytest.mark.backend_free


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    directory = tmp_path_factory.mktemp("sound") / "preset"
    small.generator().save_to_preset(directory)
    return directory


@pytest.fixture
def place(sound, tmp_path, monkeypatch):
    """A working directory with a preset, texts, and things that only look like files."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(sound, "preset")
    pathlib.Path("two.txt").write_text("the cat sat\na dog ran home\n")
    pathlib.Path("one.txt").write_text("the cat sat\n")
    pathlib.Path("late.txt").write_bytes(b"fine\n" * 99 + b"\xff\n")
    pathlib.Path("verses.txt").write_text("\n".join(verses()[:40]))
    pathlib.Path("deep.jsonl").write_text("[" * 100_000)
    pathlib.Path("pairs.csv").write_text("question,answer\nwho,the cat\n")
    pathlib.Path("directory").mkdir()
    os.symlink("loop", "loop")
    os.symlink("gone", "dangling")
    return tmp_path


def refused(arguments, message, capsys):
    """One line and code 2; everything is as it was."""
    before = sorted(pathlib.Path().rglob("*"))
    assert main(arguments) == 2
    said = capsys.readouterr().err
    lines = [line for line in said.splitlines() if line.startswith("keras-elf")]
    assert len(lines) == 1 and message in lines[0] and "Traceback" not in said, said
    assert sorted(pathlib.Path().rglob("*")) == before


TRAIN = ["train", "--preset", "preset", "--quiet", "batch_size=8", "epochs=1", "--data"]
TEXTS = ["evaluate", "--judge", "none", "--texts", "two.txt"]
MISTAKES = [
    # What is told only after work has begun must not leave a run that cannot be resumed.
    ([*TRAIN, "late.txt"], "line 100, byte 0: not UTF-8"),
    ([*TRAIN, "verses.txt", "validation=nowhere.txt"], "nowhere.txt"),
    ([*TRAIN, "verses.txt", "validation=pairs.csv"], "`target` must be given"),
    ([*TRAIN[:4], "--data", "verses.txt", "batch_size=5000"], "fewer rows"),
    ([*TRAIN, "verses.txt", "--tensorboard", "two.txt"], "`tensorboard` must be a directory"),
    ([*TRAIN, "pairs.csv", "target=nothing"], "no field 'nothing'"),
    # A place that cannot be written is known before the work.
    ([*TRAIN, "verses.txt", "--output", "loop"], "--output loop exists already"),
    ([*TRAIN, "verses.txt", "--output", "dangling"], "--output dangling exists already"),
    ([*TRAIN, "verses.txt", "--output", "two.txt/elf"], "two.txt/elf.training"),
    ([*TRAIN, "verses.txt", "--output", "/proc/nothing"], "/proc/nothing.training"),
    ([*TRAIN, "verses.txt", "--output", "new/parents/elf", "validation=x.txt"], "x.txt"),
    ([*TRAIN, "verses.txt", "depth=5"], "preset has its own depth"),
    ([*TRAIN, "verses.txt", "--seed", "1", "seed=2"], "`seed` is given twice"),
    (["train", "--data", "two.txt", "epochs=2", "--seed", "1", "epoch=3"], "'epochs'"),
    (["train", "--data", "one.txt", "--seed", "4294967296"], "`seed` must be a whole number in"),
    (["train", "--data", "one.txt", "tokenizer=unigram", "vocabulary_size=60"], "largest possible"),
    (["train", "--resume", "--output", ""], "no training to go on with"),
    (["generate", "--preset", "preset", "--guidance-scale", "2"], "--guidance-scale is on a"),
    (["generate", "--preset", "preset", "--condition", "\udcff"], "valid Unicode"),
    (["generate", "--preset", "preset", "--infill", f"<mask:{'9' * 5000}>"], "more than the 12"),
    (["generate", "--preset", "loop"], "no preset named 'loop'"),
    (["generate", "--preset", "a\0b"], "no preset named"),
    (["evaluate", "--judge", "none", "--texts", "directory"], "directory"),
    (["evaluate", "--judge", "none", "--texts", "loop"], "loop"),
    (["evaluate", "--judge", "none", "--texts", "/dev/null"], "holds no texts"),
    (["evaluate", "--judge", "none", "--texts", "deep.jsonl"], "deep.jsonl:1 is not valid JSON"),
    ([*TEXTS, "--references", "one.txt"], "1 references and 2 texts"),
    ([*TEXTS, "--data", "pairs.csv"], "--data would do nothing without --preset"),
    ([*TEXTS, "--num-steps", "3", "--gamma", "1"], "--num-steps, --gamma would do nothing"),
    ([*TEXTS, "--output", "no/such/report.json"], "there is no directory"),
    ([*TEXTS, "--output", "directory"], "it is a directory"),
    ([*TEXTS, "--output", "loop"], "a link that leads nowhere"),
    ([*TEXTS, "--output", ""], "it is empty"),
    (["evaluate", "--preset", "preset", "--references", "one.txt"], "without --texts"),
    (["evaluate", "--preset", "preset", "--limit", "3"], "--limit would do nothing without --data"),
    (["evaluate", "--preset", "preset", "--data", "pairs.csv"], "`target` must be given"),
    (["evaluate", "--texts", "two.txt", "--judge", "preset"], "`judge` could not be loaded"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
def test_mistakes(place, capsys, arguments, message):
    refused(arguments, message, capsys)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (b"", "plan.json is damaged"),
        (b"[]", "damaged, or of another version"),
        (b"[" * 100_000, "plan.json is damaged"),
        (b"\xff", "plan.json is damaged"),
        (b"{}", "`data` must say"),
        (b'{"data": "two.txt", "epoch": 3}', "of another version"),
        (b'{"data": "two.txt", "epochs": "3"}', "`epochs` must be"),
        (None, "plan.json"),
    ],
)
def test_damaged_plans(place, capsys, plan, message):
    path = pathlib.Path("elf.training/plan.json")
    path.parent.mkdir()
    path.mkdir() if plan is None else path.write_bytes(plan)
    refused(["train", "--resume", "--output", "elf"], message, capsys)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("recipe.json", b"{", "recipe.json: what is told of the preset is damaged"),
        ("manifest.json", b"\xff\xfe", "what is told of the preset is damaged"),
        ("manifest.json", b"[1]", "must be a JSON object"),
        ("task.json", b"", "task.json in preset 'preset' is not valid JSON"),
        ("config.json", b"[]", "config.json in preset 'preset' is not a Keras configuration"),
    ],
)
def test_info_on_damaged_presets(place, capsys, file, content, message):
    pathlib.Path("preset", file).write_bytes(content)
    refused(["info", "preset"], message, capsys)


def test_info_on_the_network_alone(place, capsys):
    small.backbone().save_to_preset("alone")
    assert main(["info", "alone", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["backbone"]["hidden_size"] == 16 and facts["parameters"] > 1000
    assert "ELFBackbone.from_preset" in facts["holds"]
    assert main(["info", "alone"]) == 0
    assert "the network alone" in " ".join(capsys.readouterr().out.split())


def test_a_small_text_gets_the_pieces_that_it_has(place):
    from keras_hub.models import T5Tokenizer

    plan = make_plan(data="verses.txt", tokenizer="unigram")
    proto = building.trained_vocabulary(plan, pathlib.Path("small.model"))
    assert 100 < T5Tokenizer(proto=proto).vocabulary_size() < 2048
    plan = make_plan(data="verses.txt", tokenizer="unigram", vocabulary_size=2048)
    with pytest.raises(ValueError, match="largest possible size"):
        building.trained_vocabulary(plan, pathlib.Path("large.model"))


def test_fields_of_the_pairs_to_evaluate_on(place):
    from keras_elf.cli import evaluate

    given = ["--data", "pairs.csv", "--condition", "question", "--target", "answer"]
    options = evaluate._parser().parse_args(["--preset", "preset", *given])
    assert evaluate._pairs(options) == (["who"], ["the cat"])


def test_reports_go_through_links_and_into_pipes(place):
    os.symlink("report.json", "link")
    pathlib.Path("report.json").write_text("old")
    files.check_file("--output", "link")
    files.write_text("link", "new")
    assert os.path.islink("link") and pathlib.Path("report.json").read_text() == "new\n"
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDWR | os.O_NONBLOCK)
    files.check_file("--output", "pipe")
    files.write_text("pipe", "new")
    assert os.read(reader, 99) == b"new\n"
    os.close(reader)


def test_a_failed_write_leaves_the_old_file(place, monkeypatch):
    pathlib.Path("report.json").write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        files.write_text("report.json", "new")
    assert pathlib.Path("report.json").read_text() == "old"
    assert not list(place.glob(".*.tmp"))


@pytest.mark.parametrize("backend", ["nonsense", "numpy", "Torch"])
def test_an_unknown_backend(capsys, monkeypatch, backend):
    monkeypatch.setenv("KERAS_BACKEND", backend)
    assert main(["info"]) == 2
    said = capsys.readouterr().err
    assert (
        f"`KERAS_BACKEND` must be one of ['jax', 'torch', 'tensorflow']. Received: {backend!r}"
        in said
    )
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (FloatingPointError("Training stopped: \n not finite"), 2, "Training stopped: not finite"),
        (OverflowError("int too big"), 2, "int too big"),
        (RuntimeError("out of memory"), 2, "out of memory"),
        (RecursionError(), 2, "RecursionError"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (BrokenPipeError(), 141, ""),
    ],
)
def test_how_commands_may_end(capsys, monkeypatch, error, code, said):
    def command(arguments):
        raise error

    monkeypatch.setattr(info, "main", command)
    assert main(["info"]) == code
    assert capsys.readouterr().err == (f"keras-elf info: {said}\n" if said else "")


def test_a_warning_is_one_line_once(capsys, monkeypatch):
    def command(arguments):
        for number in (1, 1, 2):
            warnings.warn(f"{number} texts\n were cut", UserWarning, stacklevel=1)
        return 0

    monkeypatch.setattr(info, "main", command)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["info"]) == 0
    assert capsys.readouterr().err == "Warning: 1 texts were cut\nWarning: 2 texts were cut\n"


@pytest.mark.parametrize(("full", "code"), [(True, 2), (False, 141)])
def test_output_that_nobody_takes(capsys, monkeypatch, full, code):
    reader, writer = os.pipe()
    os.close(reader)
    number = os.open("/dev/full", os.O_WRONLY) if full else writer
    monkeypatch.setattr(info, "_all", lambda: {"name": "x"})
    with os.fdopen(number, "w") as stream:  # closing it flushes it once more
        monkeypatch.setattr(sys, "stdout", stream)
        assert main(["info", "--json"]) == code
    assert ("No space left" in capsys.readouterr().err) is full


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_closed_streams(closed):
    command = f"{sys.executable} -m keras_elf.cli.main generate --preset x --condition - {closed}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=60, input=""
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    if "2>" not in closed:
        assert "standard input is" in done.stderr and done.stderr.count("\n") == 1
