"""Training steps without an optimizer: what the composition of a batch changes."""

from benchmarks import flops, sizes
from benchmarks.cases import Variant

ABOUT = "training steps that update nothing: each composition, and blocks run again for gradients"
REMATERIALIZED = "stratified, rematerialized"


def variants(settings):
    size = settings.shape
    batch = sizes.batch(size)

    def make(composition, **architecture):
        elf = sizes.generator(size, settings.dtype, composition, "none", **architecture)
        return lambda: elf.train_on_batch(batch)

    found = {
        composition: Variant(
            lambda composition=composition: make(composition),
            flops.loss_and_gradient(size, composition),
            size.tokens,
        )
        for composition in settings.compositions
    }
    if "stratified" in found:
        found[REMATERIALIZED] = Variant(
            lambda: make("stratified", rematerialize=True),
            flops.loss_and_gradient(size, "stratified", rematerialized=True),
            size.tokens,
        )
    return found
