"""Tokens of a generation in bfloat16 against those in float32, on the trained preset at hand."""

import time

import numpy as np

from benchmarks import machine, timing

ABOUT = "tokens in bfloat16 that equal those in float32, elf_nano_kjv (times with compilation)"
PRESET = "elf_nano_kjv"


def run(settings):
    from keras_elf import ELFGenerator

    tiny = settings.size == "tiny"
    arguments = {
        "num_samples": 16 if tiny else 256,
        "num_steps": settings.num_steps or (2 if tiny else 32),
        "seed": 5,
        "return_token_ids": True,
        "verbose": False,
    }
    found = []
    for sampler in ("sde", "ode"):
        expected = None
        for dtype in ("float32", "bfloat16"):
            elf = ELFGenerator.from_preset(PRESET, dtype=dtype)
            start = time.perf_counter()
            ids = elf.generate(sampler=sampler, **arguments)
            figure = {
                "case": "reduced_precision",
                "what": f"{sampler}, {dtype}, {arguments['num_steps']} steps",
                "date": machine.now(),
                "time_s": timing.spread([time.perf_counter() - start]),
                "tokens": ids.size,
            }
            if expected is not None:
                # What is left empty after a text's end is no token.
                written = (ids != elf.pad_token_id) | (expected != elf.pad_token_id)
                figure["same_tokens"] = float(np.mean((ids == expected)[written]))
                figure["tokens"] = int(written.sum())
            expected = ids
            found.append(figure)
    return found
