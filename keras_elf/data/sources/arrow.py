"""Arrow directories as `datasets` writes them with `save_to_disk`, read with pyarrow alone."""

import json
import os

from keras_elf.data.sources.files import fingerprint
from keras_elf.data.sources.source import Source


class ArrowSource(Source):
    """The rows of an Arrow directory, in order.

    Only the columns that are asked for are read, one record batch at a time out of a memory map.
    The schema is that of the Arrow files: the features' description beside it, whose names have
    changed between versions, is not needed.

    Args:
        directory: str. Holds `state.json` and the `.arrow` files that it names.
        columns: list of str to read. Defaults to `None`: all.
    """

    def __init__(self, directory, columns=None):
        self.directory, self.columns = directory, columns
        self.paths = [os.path.join(directory, name) for name in _file_names(directory)]
        self.pyarrow = _pyarrow()

    def names(self):
        """The names of the columns."""
        with self._open(self.paths[0]) as reader:
            return reader.schema.names

    def __iter__(self):
        row = 0
        for path in self.paths:
            with self._open(path) as reader:
                wanted = [n for n in reader.schema.names if n in (self.columns or [n])]
                for batch in self._batches(path, reader):
                    columns = [_values(batch.column(name)) for name in wanted]
                    for values in zip(*columns, strict=True):
                        yield f"{path!r}, row {row}", dict(zip(wanted, values, strict=True))
                        row += 1

    def fingerprint(self):
        return fingerprint(self.paths)

    def _open(self, path):
        pa = self.pyarrow
        try:
            return pa.ipc.open_stream(pa.memory_map(path))
        except (OSError, pa.ArrowException) as error:
            raise ValueError(f"{path!r} is not a readable Arrow stream: {_line(error)}") from None

    def _batches(self, path, reader):
        try:
            yield from reader
        except (OSError, self.pyarrow.ArrowException) as error:
            raise ValueError(f"{path!r} is truncated or damaged: {_line(error)}") from None


def is_arrow_directory(path):
    """Whether a directory was written by `save_to_disk`, as one dataset or one a split."""
    return any(os.path.isfile(os.path.join(path, n)) for n in ("state.json", "dataset_dict.json"))


def split_directory(path, split):
    """The directory of a split, or the directory itself if it is not divided."""
    if not os.path.isfile(os.path.join(path, "dataset_dict.json")):
        return path
    splits = _json(os.path.join(path, "dataset_dict.json")).get("splits", [])
    if split not in splits:
        raise ValueError(f"`split` must be one of {splits}, those of {path!r}. Received: {split!r}")
    return os.path.join(path, os.path.basename(split))


def _file_names(directory):
    state = _json(os.path.join(directory, "state.json"))
    if state.get("_indices_data_files") or state.get("_indices_files"):
        raise ValueError(
            f"{directory!r} holds a selection of rows as indices. Save it after "
            "`dataset.flatten_indices()`."
        )
    try:
        names = [entry["filename"] for entry in state["_data_files"]]
    except (KeyError, TypeError):
        names = []
    if not names:
        raise ValueError(f"{directory!r}: state.json names no data files.")
    for name in names:
        if not isinstance(name, str) or os.path.basename(name) != name or name in ("", ".", ".."):
            raise ValueError(
                f"{directory!r}: state.json names a file outside the directory: {name!r}"
            )
        if not os.path.isfile(os.path.join(directory, name)):
            raise ValueError(f"{directory!r}: the file {name!r} that state.json names is missing.")
    return names


def _json(path):
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path!r} is not readable JSON: {_line(error)}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path!r} must hold a JSON object.")
    return value


def _values(column):
    """The entries of a column: ids as array slices without a copy, all else as Python objects."""
    kind = str(column.type)
    if not kind.startswith(("list<", "large_list<")) or column.null_count:
        return column.to_pylist()
    flat = column.flatten()
    if not str(flat.type).lstrip("u").startswith("int") or flat.null_count:
        return column.to_pylist()
    flat = flat.to_numpy()
    ends = column.value_lengths().to_numpy().cumsum()
    return [
        flat[end - size : end]
        for end, size in zip(ends, column.value_lengths().to_numpy(), strict=True)
    ]


def _pyarrow():
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError:
        raise ValueError("Arrow directories need pyarrow: pip install pyarrow") from None
    return pyarrow


def _line(error):
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
