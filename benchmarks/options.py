"""What the command line of the benchmarks takes."""

import argparse
import pathlib

from benchmarks import cases, sizes

ABOUT = """\
Measure keras_elf. Things that do the same work are measured in turns, and their times
compared within each turn, so that ratios hold on a busy machine, absolute times less so.

cases:
{cases}

sizes:
  tiny         2 x 64, D 32, V 256, S 32, B 10: to see that everything runs
  nano         6 x 256, D 128, V 2048, S 64, B 32: what two cores train
  elf_b_slice  12 x 768, D 512, V 32100, S 128, B 8: ELF-B's network on short rows
  elf_b, elf_m, elf_l: the published sizes at S 1024, B 5

examples:
  python -m benchmarks --size tiny
  python -m benchmarks --case train_step --backend jax --backend torch
  python -m benchmarks --size elf_b_slice --case muon --case generation --json figures.json
  python -m benchmarks --case scaling --plot scaling.png
  python -m benchmarks --keep          (then: python -m benchmarks.summary)
"""
COLUMNS = """\
columns:
  first call        with compilation; JAX finds again what an earlier case of the run has compiled
  time / first row  median over rounds of the ratio within a round, with the range of the ratios
  of matmul rate    FLOPs of the matrix products a second, over the rate of a square product of the
                    same dtype that is measured beside the figure
  peak memory       highest resident size in two calls after two to warm up, above the resident size
                    once the model was built, in a process of its own; on a GPU the allocator's peak
  in a call         that peak above the resident size just before those two calls
"""


def parser():
    width = max(map(len, cases.CASES))
    lines = (
        f"  {name:{width}}  {module.ABOUT}"
        + (" (by name only)" if name in cases.ON_REQUEST else "")
        for name, module in cases.CASES.items()
    )
    made = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=ABOUT.format(cases="\n".join(lines)),
        epilog=COLUMNS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = made.add_argument
    add("--size", choices=sizes.NAMES, default="nano", help="default: nano")
    add("--length", type=int, help="tokens of a sequence, instead of the size's own")
    add("--batch", type=int, help="sequences of a batch, instead of the size's own")
    add(
        "--case",
        choices=cases.CASES,
        action="append",
        help="repeatable; default: all but those by name only",
    )
    add(
        "--backend",
        choices=(*cases.BACKENDS, "all"),
        action="append",
        help="repeatable; each runs in a process of its own; default: KERAS_BACKEND, or jax",
    )
    dtypes = ("float32", "mixed_bfloat16", "bfloat16")
    add("--dtype", choices=dtypes, default="float32", help="dtype policy; default: float32")
    text = "of the training step; repeatable; the others are compared to the first"
    add("--composition", choices=cases.COMPOSITIONS, action="append", help=text)
    add("--num-steps", type=int, help="of a generation; default: 32, tiny 8")
    add("--repeats", type=int, default=5, help="timed rounds; default: 5")
    add("--no-memory", action="store_true", help="leave out the processes that measure memory")
    text = "write a record; with several backends their names go into those of the files"
    add("--json", type=pathlib.Path, metavar="FILE", help=text)
    add("--plot", type=pathlib.Path, metavar="FILE", help="draw the figures; needs matplotlib")
    add("--keep", action="store_true", help="keep the record in benchmarks/results/")
    return made


def parse(arguments):
    """The options; exits where they are wrong."""
    made = parser()
    found = made.parse_args(arguments)
    for name in ("length", "batch", "num_steps", "repeats"):
        if getattr(found, name) is not None and getattr(found, name) < 1:
            made.error(f"--{name.replace('_', '-')} must be at least 1")
    return found
