"""`benchmarks/results/README.md` from the records beside it: `python -m benchmarks.summary`."""

import argparse
import json
import pathlib

from benchmarks import record, table

HEAD = """\
# Results of record

Made by `python -m benchmarks.summary` from the JSON files in this folder: do not edit. Times are
medians; `time / first row` is the median of the ratios within one round, with their range. FLOPs
are those of the matrix products, counted from shapes; their share is of the rate of a square
product measured beside the figure. Peak memory is above the resident size once the model was built,
`in a call` above that just before the call (see `benchmarks/memory.py`).
"""
GPU_HEAD = "GPU check, {backend}, {machine}"


def markdown(directory=record.RESULTS):
    """The text of the README."""
    parts = [HEAD]
    for path in sorted(pathlib.Path(directory).glob("*.json")):
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept.get("format") == record.FORMAT:
            parts.append(_record(path.name, kept))
        elif str(kept.get("format", "")).startswith("gpu_check"):
            parts.append(_gpu_check(path.name, kept))
        else:
            raise ValueError(f"{path.name} is neither a record nor a GPU check.")
    return "\n".join(parts)


def _record(name, kept):
    dtypes = sorted({f["dtype"] for f in kept["figures"] if "dtype" in f})
    lines = [
        f"## {kept['size']} on {kept['backend']}, {_machine(kept['machine'])}",
        "",
        f"{kept['date']}, {', '.join(dtypes)}; {_versions(kept)}; [{name}]({name})",
    ]
    cases = dict.fromkeys((f["case"], f.get("dtype")) for f in kept["figures"])
    for case, dtype in cases:
        figures = [f for f in kept["figures"] if (f["case"], f.get("dtype")) == (case, dtype)]
        title = case if len(dtypes) < 2 or dtype is None else f"{case}, {dtype}"
        lines += ["", f"### {title}", "", *_table(*table.table(figures))]
        notes = table.notes(figures)
        lines += ["", *(f"- {note}" for note in notes)] if notes else []
    return "\n".join([*lines, ""])


def _gpu_check(name, kept):
    from benchmarks.gpu_check import headline

    title = GPU_HEAD.format(backend=kept["backend"], machine=_machine(kept["machine"]))
    rows = [
        [part, headline(found), f"{found['seconds']:.0f} s"]
        for part, found in kept["parts"].items()
    ]
    lines = [f"## {title}", "", f"{kept['date']}; {_versions(kept)}; [{name}]({name})", ""]
    return "\n".join([*lines, *_table(("part", "figures", "took"), rows), ""])


def _machine(machine):
    processor = f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']:.0f} GiB"
    return f"{machine['gpu']}, {processor}" if machine["gpu"] else processor


def _versions(kept):
    names = ["python", "keras"]
    names.append("jax" if kept["backend"] == "jax" else kept["backend"])
    return ", ".join(f"{n} {kept['versions'].get(n, 'unknown')}" for n in names)


def _table(columns, rows):
    """Lines of a Markdown table."""
    lines = [columns, ["---"] + ["---:"] * (len(columns) - 1), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.summary", description=__doc__)
    parser.add_argument("--directory", type=pathlib.Path, default=record.RESULTS)
    directory = parser.parse_args(arguments).directory
    path = directory / "README.md"
    path.write_text(markdown(directory), encoding="utf-8")
    print(f"Wrote {path.name} from {len(list(directory.glob('*.json')))} records")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
