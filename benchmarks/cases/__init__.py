"""What is measured: one module a case.

A case has an `ABOUT` line and either `variants(settings)`, things that do the same work and are
measured in turns, or a `run(settings)` of its own that returns figures.
"""

import dataclasses
import os
from collections.abc import Callable

from benchmarks import machine, memory, sizes, timing

COMPOSITIONS = ("per_example", "stratified", "per_step")


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the command line chose; see `python -m benchmarks --help`."""

    size: str = "nano"
    length: int | None = None
    batch: int | None = None
    dtype: str = "float32"
    compositions: tuple = COMPOSITIONS
    repeats: int = 5
    num_steps: int | None = None
    memory: bool = True

    @property
    def shape(self):
        """The `benchmarks.sizes.Size`."""
        return sizes.get(self.size, self.length, self.batch)

    @property
    def matmul_dtype(self):
        """What the matrix products of the network compute in."""
        return "bfloat16" if "bfloat16" in self.dtype else "float32"

    def as_dict(self):
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class Variant:
    """One of the things that a case compares.

    Attributes:
        make: builds it, and returns a callable without arguments that does the work once; or
            the seconds it took, where `self_timed`.
        flops: operations of one call, as `benchmarks.flops` counts them, or `None`.
        tokens: text tokens of one call, or `None`.
        self_timed: whether the callable measures itself.
        flops_dtype: what the matrix products compute in, where it is not the network's dtype.
        memory: whether its peak memory is worth a process of its own.
    """

    make: Callable
    flops: int | None = None
    tokens: int | None = None
    self_timed: bool = False
    flops_dtype: str | None = None
    memory: bool = True


def prepare_backend():
    """Settings of the backend that users have to make as well."""
    import keras

    if keras.backend.backend() == "torch":
        import torch

        # The matrix products of CPUs are many times slower on denormal numbers.
        torch.set_flush_denormal(True)


def figures(settings, case, variants):
    """Measure variants in turns; the first one is what the others are compared to.

    Returns:
        list of dicts, one a variant: see `benchmarks/results/README.md` for the keys.
    """
    measures = {}
    for name, variant in variants.items():
        made = variant.make()
        measures[name] = made if variant.self_timed else timing.Stopwatch(made)
    timed = timing.compare(measures, settings.repeats)
    del measures
    rates = {}
    found = []
    for name, variant in variants.items():
        figure = {"case": case, "what": name, **circumstances(settings), **timed[name]}
        seconds = figure["time_s"]["median"]
        figure["ratio"]["to"] = next(iter(variants))
        if variant.tokens:
            figure["tokens"] = variant.tokens
            figure["tokens_per_s"] = variant.tokens / seconds
        if variant.flops:
            dtype = variant.flops_dtype or settings.matmul_dtype
            if dtype not in rates:
                rates[dtype] = machine.matmul_rate(dtype)
            figure["flops"] = variant.flops
            figure["matmul"] = rates[dtype]
            figure["matmul_share"] = variant.flops / seconds / rates[dtype]["flops_per_s"]
        if settings.memory and variant.memory:
            figure |= memory.of_variant(settings, case, name)
        found.append(figure)
    return found


def circumstances(settings):
    """The part of a figure that says what it was measured with."""
    shape = dataclasses.asdict(settings.shape)
    return {"dtype": settings.dtype, "shape": shape, "date": machine.now()}


def run(settings, case):
    """All figures of a case."""
    module = CASES[case]
    if hasattr(module, "run"):
        return module.run(settings)
    return figures(settings, case, module.variants(settings))


from benchmarks.cases import (  # noqa: E402  (the modules need what is above)
    data_pipeline,
    encoder,
    full_size_import,
    generation,
    import_time,
    loss_and_gradient,
    muon,
    reduced_precision,
    sampling_step,
    scaling,
    train_step,
)

CASES = {
    "train_step": train_step,
    "loss_and_gradient": loss_and_gradient,
    "sampling_step": sampling_step,
    "generation": generation,
    "encoder": encoder,
    "muon": muon,
    "data_pipeline": data_pipeline,
    "import_time": import_time,
    "scaling": scaling,
    "reduced_precision": reduced_precision,
    "full_size_import": full_size_import,
}
# Those that `--case` has to name.
ON_REQUEST = ("scaling", "reduced_precision", "full_size_import")
BACKENDS = ("jax", "tensorflow", "torch")


def backend_name():
    """The backend that `KERAS_BACKEND` asks for."""
    return os.environ.get("KERAS_BACKEND", "jax")
