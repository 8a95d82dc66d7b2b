"""Whole training steps, optimizer included, for each composition of a batch."""

from benchmarks import flops, sizes
from benchmarks.cases import Variant

ABOUT = "training steps with Muon: stratified and per-step batches against per-example ones"


def variants(settings):
    size = settings.shape
    batch = sizes.batch(size)

    def make(composition):
        elf = sizes.generator(size, settings.dtype, composition)
        # Returns Python numbers, so it has waited for the loss, and on JAX for all of the step.
        return lambda: elf.train_on_batch(batch)

    return {
        composition: Variant(
            lambda composition=composition: make(composition),
            flops.train_step(size, composition),
            size.tokens,
        )
        for composition in settings.compositions
    }
