"""Records: the figures of one backend and size with what they were measured on, as JSON."""

import json
import pathlib

from benchmarks import machine
from keras_elf.atomic_file import replaced

FORMAT = 1
RESULTS = pathlib.Path(__file__).parent / "results"


def new(settings, backend, figures, arguments=()):
    """A record.

    Args:
        settings: `benchmarks.cases.Settings`.
        backend: str.
        figures: list of dicts from the cases.
        arguments: list of str. The command line.
    """
    return {
        "format": FORMAT,
        "size": settings.size,
        "backend": backend,
        "date": machine.now(),
        "machine": machine.describe(),
        "versions": machine.versions(),
        "arguments": list(arguments),
        "settings": settings.as_dict(),
        "figures": figures,
    }


def result_path(record):
    """Where a record is kept: `<date>_<machine>_<backend>_<size>.json`."""
    day = record["date"][:10]
    name = "_".join([day, machine.label(record["machine"]), record["backend"], record["size"]])
    return RESULTS / f"{name}.json"


def merge(record, earlier):
    """`record` with the figures of `earlier` that it does not measure anew."""
    key = _key
    new_keys = {key(figure) for figure in record["figures"]}
    kept = [figure for figure in earlier["figures"] if key(figure) not in new_keys]
    return {**record, "figures": kept + record["figures"]}


def check_place(path):
    """Raise `ValueError` where the file at `path` could not be joined with a new record."""
    if pathlib.Path(path).exists():
        read(path)


def write(record, path):
    """Write a record, joined with what the file held of the same backend and size."""
    path = pathlib.Path(path)
    if path.exists():
        earlier = read(path)
        if all(earlier[k] == record[k] for k in ("backend", "size")):
            record = merge(record, earlier)
    write_json(record, path)
    return path


def write_json(value, path):
    """Write JSON so that a killed program leaves the old file or the new one."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replaced(path) as file:
        file.write(json.dumps(value, indent=1) + "\n")


def read(path):
    """A record from its file.

    Raises:
        ValueError: for a file of another kind.
    """
    try:
        record = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        record = None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ValueError(f"{path} is not a record of `python -m benchmarks` (format {FORMAT}).")
    return record


def _key(figure):
    return figure["case"], figure.get("dtype"), str(figure.get("shape"))
