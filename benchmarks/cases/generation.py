"""A whole generation against as many single forward passes."""

import functools

from benchmarks import flops, sizes
from benchmarks.cases import Variant
from benchmarks.cases.sampling_step import forward, generate

ABOUT = "a generation of N steps against N + 1 single compiled forward passes"


def variants(settings):
    size = settings.shape
    num_steps = settings.num_steps or (8 if settings.size == "tiny" else 32)
    elf = functools.cache(lambda: sizes.generator(size, settings.dtype))

    def forwards():
        single = forward(elf(), size)

        def run():
            for _ in range(num_steps + 1):
                result = single()
            return result

        return run

    return {
        f"{num_steps + 1} forward passes": Variant(
            forwards, (num_steps + 1) * flops.forward(size), size.tokens, memory=False
        ),
        f"generate, {num_steps} steps": Variant(
            lambda: generate(elf(), size, num_samples=size.batch, num_steps=num_steps),
            flops.generation(size, num_steps),
            size.tokens,
        ),
    }
