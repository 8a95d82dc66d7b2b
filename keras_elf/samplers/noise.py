"""Noise of a generation run: each sample has its own stream, whatever the batch."""

import concurrent.futures
import os

import numpy as np

from keras_elf import checks

_GRID_ROW = 2**64 - 1
# Numbers in a step; about nine milliseconds of one thread.
_WORTH_THREADS = 2**19


class SampleNoise:
    """Standard normals that depend on `(seed, sample, step)` alone.

    Counter-based (Philox), so that sample 7 gets the same noise in a batch of 1 or of 64,
    and on each backend; drawn a step at a time, so that no buffer of all steps exists.

    Args:
        seed: int >= 0, or `None` for a fresh one from the system's entropy.
    """

    def __init__(self, seed=None):
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1, "uint64")[0] >> 1)
        self.seed = checks.integer("seed", seed, minimum=0, maximum=2**63 - 1)

    def grid(self, num_steps):
        """`(num_steps - 1,)` normals of the time grid, shared by all samples."""
        return self._generator(_GRID_ROW, num_steps).standard_normal(num_steps - 1, "float32")

    def initial(self, samples, shape):
        """`(len(samples), *shape)` normals that the samples start from."""
        return self.step(-1, samples, shape)

    def step(self, step, samples, shape):
        """`(len(samples), *shape)` normals of step `step`."""
        out = np.empty((len(samples), *shape), "float32")

        def draw(row, sample):
            self._generator(sample, step + 1).standard_normal(dtype="float32", out=out[row])

        if out.size < _WORTH_THREADS:
            for row, sample in enumerate(samples):
                draw(row, sample)
        else:
            # NumPy draws without Python's lock, and an accelerator would wait for one thread.
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
                list(threads.map(draw, range(len(samples)), samples))
        return out

    def _generator(self, row, stream):
        # The last word of the counter separates streams by 2**192 draws.
        bits = np.random.Philox(
            key=np.array([self.seed, row], "uint64"),
            counter=np.array([0, 0, 0, stream], "uint64"),
        )
        return np.random.Generator(bits)
