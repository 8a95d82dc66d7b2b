"""How the cost of a forward pass and of a training step grows, beside the count of FLOPs."""

import dataclasses

from benchmarks import flops, sizes
from benchmarks.cases import Variant, figures
from benchmarks.cases.sampling_step import forward

ABOUT = "forward passes and training steps over the length (64 to 1024), the depth, the batch"


def points(size, small=False):
    """dict of axis -> sizes along it. The length grows at a steady number of tokens a batch."""
    lengths = (16, 32, 64) if small else (64, 128, 256, 512, 1024)
    depths = [max(1, size.depth * k // 4) for k in (1, 2, 4)]
    batches = [max(5, size.batch * k // 4) for k in (1, 2, 4)]

    def with_(**changes):
        return dataclasses.replace(size, **changes)

    return {
        "length": [with_(length=n, batch=max(5, size.tokens // n)) for n in lengths],
        "depth": [with_(depth=n) for n in dict.fromkeys(depths)],
        "batch": [with_(batch=n) for n in dict.fromkeys(batches)],
    }


def variants(axis_sizes, settings, training):
    def make(size):
        elf = sizes.generator(size, settings.dtype)
        if not training:
            return forward(elf, size)
        batch = sizes.batch(size)
        return lambda: elf.train_on_batch(batch)

    count = flops.train_step if training else flops.forward
    return {
        size: Variant(lambda size=size: make(size), count(size), size.tokens, memory=False)
        for size in axis_sizes
    }


def run(settings):
    found = []
    for axis, along in points(settings.shape, settings.size == "tiny").items():
        for training in (False, True):
            work = "training step" if training else "forward pass"
            these = figures(settings, "scaling", variants(along, settings, training))
            for figure, size in zip(these, along, strict=True):
                figure["shape"] = dataclasses.asdict(size)
                figure["axis"], figure["work"] = axis, work
                figure["what"] = f"{work}, {axis} {getattr(size, axis)}"
                figure["ratio"]["to"] = f"{axis} {getattr(along[0], axis)}"
                figure["flops_ratio"] = figure["flops"] / these[0]["flops"]
            found += these
    return found
