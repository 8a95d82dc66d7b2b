"""Sizes, batches and time of a GPU check."""

import dataclasses
import functools
import sys
import time

from benchmarks import machine, sizes

MODELS = ("elf_b", "elf_m", "elf_l")
FULL = {
    "training_batches": {
        "elf_b": (128, 64, 32, 16, 8, 5),
        "elf_m": (64, 32, 16, 8, 5),
        "elf_l": (32, 16, 8, 5),
    },
    "training_steps": 5,
    "sampling_batches": (1, 64, 8, 32, 2, 4, 16),
    "sampling_steps": (8, 32, 64),
    "parity": {"rows": 5, "length": 128, "num_steps": 4},
    "parity_policies": ("float32", "mixed_bfloat16"),
}
DRY = {
    "training_batches": dict.fromkeys(MODELS, (5,)),
    "training_steps": 1,
    "sampling_batches": (2,),
    "sampling_steps": (2, 3),
    "parity": {"rows": 5, "length": 16, "num_steps": 2},
    "parity_policies": ("float32",),
}


class Plan:
    """What a run may do and how long.

    Args:
        dry_run: bool. Tiny shapes on the CPU, through the same code.
        budget_s: float. Seconds that the whole run should take.
    """

    def __init__(self, dry_run=False, budget_s=240.0):
        self.dry_run, self.budget_s = dry_run, budget_s
        self.settings = DRY if dry_run else FULL
        self._start = time.perf_counter()

    def __getattr__(self, name):
        try:
            return self.__dict__["settings"][name]
        except KeyError:
            raise AttributeError(name) from None

    @functools.cached_property
    def matmul(self):
        """The machine's matmul rate in bfloat16, measured once a run."""
        return machine.matmul_rate("bfloat16", least_s=1e-4 if self.dry_run else 0.05)

    def spent(self):
        """Seconds since the start."""
        return time.perf_counter() - self._start

    def allows(self, seconds):
        """Whether work that is expected to take `seconds` still fits."""
        return self.spent() + seconds <= self.budget_s

    def size(self, model, rows, length=None):
        """`benchmarks.sizes.Size` of a published model, or of a tiny stand-in for it."""
        if self.dry_run:
            # The stand-ins are alike, so that each program is compiled but once.
            size = sizes.Size(1, 16, 2, 8, 64, length=16, batch=rows, bottleneck_dim=4)
        else:
            size = sizes.get(model, batch=rows)
        return size if length is None else dataclasses.replace(size, length=length)


def hide_tensorflow():
    """Make keras_hub do without TensorFlow, which would reach for the GPU's memory as well."""
    for name in ("tensorflow", "tensorflow_text"):
        sys.modules.setdefault(name, None)


def is_out_of_memory(error):
    """Whether an exception says that the device's memory did not suffice."""
    text = f"{type(error).__name__} {error}".lower()
    return any(sign in text for sign in ("outofmemory", "out of memory", "resource_exhausted"))
