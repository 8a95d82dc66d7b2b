"""`kill -9` at random moments of a run that saves after every step."""

import csv
import os
import random
import subprocess
import sys

import pytest

from keras_elf.callbacks import ResumableCheckpoint
from keras_elf.training.callbacks import archive
from tests.callbacks import killed_run
from tests.models import small

# Starting anew and compiling takes these long; ten kills are made where a process can fork.
KILLS = int(os.environ.get("KERAS_ELF_KILLS", 3))
TIMED = ("seconds", "tokens_per_second")


def losses(directory):
    with open(directory / "log.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    return [{k: v for k, v in row.items() if k not in TIMED} for row in rows]


def start(directory, *args):
    command = [sys.executable, "-m", "tests.callbacks.killed_run", str(directory), *args]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process):
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0, out[-2000:]
    return out


def assert_whole(directory):
    """What a killed run left can be read, all of it."""
    paths = ResumableCheckpoint(directory / "saved").checkpoints()
    assert paths
    for path in paths:
        manifest, _ = archive.read(path)
        assert manifest["step"] == int(path.name[5:15])
    return manifest["step"]


def by_forks(directory):
    return finish(start(directory, "10")).count("killed")


def by_new_processes(directory):
    rng, steps = random.Random(0), [0]
    for _ in range(KILLS):
        process = start(directory)
        alive = lambda p=process: p.poll() is None  # noqa: E731
        assert killed_run.wait_and_kill(process.pid, directory, rng.uniform(0, 0.1), alive)
        process.communicate()
        steps.append(assert_whole(directory))
    assert steps == sorted(set(steps))
    finish(start(directory))
    return KILLS


@pytest.mark.slow
def test_killed_runs_lose_nothing(shared, tmp_path):
    kills = (by_forks if small.BACKEND == "torch" else by_new_processes)(tmp_path / "killed")
    assert kills == (10 if small.BACKEND == "torch" else KILLS)
    shared.fit(killed_run.callbacks(tmp_path / "whole"), epochs=killed_run.EPOCHS)
    whole, killed = losses(tmp_path / "whole"), losses(tmp_path / "killed")
    assert len(whole) == 5 * killed_run.EPOCHS
    assert killed == whole
    # The last checkpoints hold the same arrays to the last bit.
    assert assert_whole(tmp_path / "killed") == 5 * killed_run.EPOCHS
    one, other = (
        archive.read(ResumableCheckpoint(tmp_path / name / "saved").checkpoints()[-1])[1]
        for name in ("whole", "killed")
    )
    assert small.all_equal(one.values(), other.values())
