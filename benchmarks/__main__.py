"""Command line: `KERAS_BACKEND=jax python -m benchmarks --size nano --case train_step`."""

import argparse
import json
import os
import pathlib
import platform

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def main():
    from rich.console import Console
    from rich.table import Table

    from benchmarks.cases import CASES, SIZES
    from benchmarks.timing import compare

    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--case", choices=[*CASES, "all"], default="all")
    parser.add_argument("--repeats", type=int, default=5, help="timed rounds")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures to this file")
    options = parser.parse_args()

    import keras

    backend = keras.backend.backend()
    if backend == "torch":
        import torch

        torch.set_flush_denormal(True)
    table = Table(
        title=f"{options.size} on {backend}, {platform.machine()}, {os.cpu_count()} cores"
    )
    for column in ("case", "what", "first call", "median", "spread", "tokens/s", "ratio"):
        table.add_column(column, justify="left" if column in ("case", "what") else "right")
    results = []
    for name in CASES if options.case == "all" else [options.case]:
        functions, tokens = CASES[name](options.size)
        figures = compare(functions, options.repeats)
        base = next(iter(figures.values()))["median_s"]
        for what, f in figures.items():
            ratio = f["median_s"] / base
            results.append({"case": name, "what": what, "time_ratio": ratio, "tokens": tokens, **f})
            table.add_row(
                name,
                what,
                f"{f['first_s']:.2f} s",
                f"{f['median_s'] * 1e3:.1f} ms",
                f"{f['min_s'] * 1e3:.1f}..{f['max_s'] * 1e3:.1f}",
                f"{tokens / f['median_s']:,.0f}",
                f"{ratio:.2f}",
            )
    Console().print(table)
    if options.json:
        record = {"backend": backend, "keras": keras.__version__, "size": options.size}
        options.json.write_text(json.dumps({**record, "results": results}, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
