"""A run to be killed: `python -m tests.callbacks.killed_run DIRECTORY [KILLS]`.

Trains the tiny model of the tests, saving after every step, from where it was left. With KILLS it
forks after all is imported and built, and kills its own children, one after the other.
"""

import os
import pathlib
import random
import signal
import sys
import time

import tests.conftest  # noqa: F401  the same flags as the tests

EPOCHS = 6


def callbacks(directory):
    from keras_elf.callbacks import ResumableCheckpoint, TrainingLog

    directory = pathlib.Path(directory)
    return [
        TrainingLog(directory / "log.csv", every_n_steps=1),
        ResumableCheckpoint(directory / "saved", every_n_steps=1, keep=2, resume=True),
    ]


def wait_and_kill(process_id, directory, delay, alive):
    """Kill a run a while after it has saved something of its own; `False` if it ended first."""
    saved = pathlib.Path(directory) / "saved"
    before = {path.name for path in saved.glob("step-*")}
    while {path.name for path in saved.glob("step-*")} <= before:
        if not alive():
            return False
        time.sleep(0.005)
    time.sleep(delay)
    if not alive():
        return False
    os.kill(process_id, signal.SIGKILL)
    return True


def main(directory, kills=0):
    from tests.callbacks.runs import Shared

    shared = Shared()
    shared.reset()
    rng = random.Random(0)
    for _ in range(int(kills)):
        child = os.fork()
        if child == 0:
            shared.fit(callbacks(directory), epochs=EPOCHS)
            os._exit(0)
        ended = []

        def alive(child=child, ended=ended):
            if not ended and os.waitpid(child, os.WNOHANG)[0]:
                ended.append(child)
            return not ended

        if wait_and_kill(child, directory, rng.uniform(0, 0.2), alive):
            os.waitpid(child, 0)
            print("killed", flush=True)
    shared.fit(callbacks(directory), epochs=EPOCHS)


if __name__ == "__main__":
    main(*sys.argv[1:])
