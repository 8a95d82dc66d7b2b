"""The benchmarks' command line."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from benchmarks import cases, options, record  # noqa: E402

# jaxlib 0.10.2 crashes on CPUs when it reads Newton-Schulz on ELF-B's shapes back from a cache.
SHARED_CACHE = ("tiny", "nano")


def main(arguments=None):
    arguments = sys.argv[1:] if arguments is None else arguments
    chosen = options.parse(arguments)
    if chosen.plot:
        from benchmarks import plot

        plot.require_matplotlib()
    backends = chosen.backend or [os.environ["KERAS_BACKEND"]]
    backends = cases.BACKENDS if "all" in backends else list(dict.fromkeys(backends))
    paths = {backend: _json_path(chosen.json, backend, backends) for backend in backends}
    for path in filter(None, paths.values()):
        record.check_place(path)

    def save(one):
        if paths[one["backend"]]:
            record.write(one, paths[one["backend"]])
        if chosen.keep:
            record.write(one, record.result_path(one))

    if list(backends) == [os.environ["KERAS_BACKEND"]]:
        records = [measure(chosen, arguments, save)]
    else:
        records = []
        for backend in backends:
            records.append(_in_child(backend, arguments))
            save(records[-1])
    if chosen.keep:
        print("Kept:", ", ".join(record.result_path(one).name for one in records))
    if chosen.plot:
        plot.draw(records, chosen.plot)
    return 0


def _json_path(path, backend, backends):
    if path is None or len(backends) == 1:
        return path
    return path.with_name(f"{path.stem}_{backend}{path.suffix}")


def measure(chosen, arguments, save):
    """The record of the cases on this process's backend; their tables are printed.

    Args:
        chosen: the parsed options.
        arguments: list of str. The command line.
        save: called with the record after each case, since the next one may fail.
    """
    settings = cases.Settings(
        size=chosen.size,
        length=chosen.length,
        batch=chosen.batch,
        dtype=chosen.dtype,
        compositions=tuple(chosen.composition or cases.COMPOSITIONS),
        repeats=chosen.repeats,
        num_steps=chosen.num_steps,
        memory=not chosen.no_memory,
    )
    names = chosen.case or [name for name in cases.CASES if name not in cases.ON_REQUEST]
    # Where a record was written says nothing about it.
    line = _without(arguments, ("--json", "--plot"), ("--keep",))
    figures = []
    with tempfile.TemporaryDirectory() as cache:
        if chosen.size in SHARED_CACHE:
            # The processes that measure memory find what this one has compiled.
            os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", cache)
        cases.prepare_backend()
        for name in dict.fromkeys(names):
            found = cases.run(settings, name)
            figures += found
            show(settings, found)
            made = record.new(settings, os.environ["KERAS_BACKEND"], figures, line)
            save(made)
    return made


def show(settings, figures):
    """Print figures as a table, with notes below it."""
    from rich.console import Console
    from rich.table import Table

    from benchmarks import table

    console = Console(width=None if sys.stdout.isatty() else 140)
    made = Table(
        title=f"{figures[0]['case']}: {settings.size}, {settings.dtype}, "
        f"{os.environ['KERAS_BACKEND']}"
    )
    columns, rows = table.table(figures)
    for i, column in enumerate(columns):
        made.add_column(column, justify="right" if i else "left")
    for row in rows:
        made.add_row(*row)
    console.print(made)
    for line in table.notes(figures):
        console.print(line, style="dim", highlight=False)


def _in_child(backend, arguments):
    """The record that this program makes under another backend."""
    arguments = _without(arguments, ("--backend", "--json", "--plot"), ("--keep",))
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "record.json"
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks", *arguments, "--json", str(path)],
            env={**os.environ, "KERAS_BACKEND": backend},
        )
        if done.returncode:
            raise SystemExit(f"The benchmarks failed on {backend}.")
        return json.loads(path.read_text(encoding="utf-8"))


def _without(arguments, valued, flags):
    """`arguments` without some options and their values."""
    kept, skip = [], False
    for argument in arguments:
        if skip:
            skip = False
        elif argument in valued:
            skip = True
        elif argument not in flags and not argument.startswith(tuple(v + "=" for v in valued)):
            kept.append(argument)
    return kept


if __name__ == "__main__":
    raise SystemExit(main())
