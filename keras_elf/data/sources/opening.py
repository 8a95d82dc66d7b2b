"""Which source a `spec` means."""

import os

from keras_elf.data.sources import files
from keras_elf.data.sources.archives import ArchiveSource, is_archive
from keras_elf.data.sources.arrow import ArrowSource, is_arrow_directory, split_directory
from keras_elf.data.sources.iterables import IterableSource
from keras_elf.data.sources.lines import CsvSource, JsonSource, TextSource
from keras_elf.data.sources.tfds_source import (
    default_fields,
    is_builder_directory,
    is_known_name,
    open_tfds,
)

_JSON, _CSV, _TEXT = (".jsonl", ".json", ".ndjson"), (".csv", ".tsv"), (".txt", ".text", ".md")


def open_source(spec, fields, *, split="train", data_dir=None, unit="line"):
    """Open what `spec` names, and settle the fields that are `"auto"` where it can tell.

    Args:
        spec: as in `keras_elf.data.load_dataset`.
        fields: `Fields`.
        split: str. Split of TFDS data sets and divided Arrow directories.
        data_dir: str or path. Where TFDS data sets lie. Defaults to `None`: TFDS's own place.
        unit: str. Document of plain text: `"line"`, `"paragraph"` or `"file"`.

    Returns:
        A source.
    """
    if isinstance(spec, os.PathLike):
        spec = os.fspath(spec)
    if isinstance(spec, (list, tuple)) and spec and all(_is_path(entry) for entry in spec):
        return _files(files.expand_paths(spec), unit)
    if not isinstance(spec, str):
        return IterableSource(spec)
    if not spec.strip():
        raise ValueError("`spec` must name a data set or a file. Received an empty str.")
    if spec.startswith("tfds:"):
        return _tfds(spec.removeprefix("tfds:"), fields, split, data_dir)
    path = os.path.expanduser(spec)
    if os.path.isdir(path):
        return _directory(path, fields, split)
    if not os.path.exists(path) and is_known_name(spec):
        return _tfds(spec, fields, split, data_dir)
    return _files(files.expand_paths(path), unit)


def _is_path(entry):
    """Whether an entry of a list is the path of a file, and not a text."""
    if isinstance(entry, os.PathLike):
        return True
    if not isinstance(entry, str) or len(entry) > 1024 or any(c.isspace() for c in entry):
        return isinstance(entry, str) and len(entry) <= 1024 and os.path.isfile(entry)
    named = files.stem_extension(entry) in (*_JSON, *_CSV, *_TEXT, ".tar")
    return named or os.path.isfile(entry)


def _files(paths, unit):
    kinds = {_kind(path) for path in paths}
    if len(kinds) > 1:
        raise ValueError(
            "`spec` names files of different kinds, "
            f"{sorted(kind.__name__ for kind in kinds)}. Load them one kind at a time."
        )
    kind = kinds.pop()
    return kind(paths, unit) if kind is TextSource else kind(paths)


def _kind(path):
    if is_archive(path):
        return ArchiveSource
    extension = files.stem_extension(path)
    for kind, extensions in ((JsonSource, _JSON), (CsvSource, _CSV), (TextSource, _TEXT)):
        if extension in extensions:
            return kind
    raise ValueError(
        f"{path!r}: the kind of a file is told by its extension, one of "
        f"{[*_JSON, *_CSV, *_TEXT, '.tar']}, with or without {list(files.COMPRESSIONS)}. "
        f"Received: {extension!r}"
    )


def _directory(path, fields, split):
    if is_builder_directory(path):
        return _tfds(path, fields, split, None)
    if is_arrow_directory(path):
        source = ArrowSource(split_directory(path, split))
        fields.resolve(source.names())
        source.columns = [name for name in (fields.condition, fields.target) if name]
        return source
    raise ValueError(
        f"`spec` {path!r} is a directory, but neither that of a TFDS builder (with its version, "
        "such as name/1.0.0) nor an Arrow directory of `save_to_disk`. Name files in it, for "
        f"example {os.path.join(path, '*.jsonl')!r}."
    )


def _tfds(name, fields, split, data_dir):
    source = open_tfds(name, split, data_dir)
    known = default_fields(name, source.names())
    if known is not None:
        condition, target = known
        if fields.target == "auto":
            fields.target = target
        if fields.condition == "auto":
            fields.condition = None if fields.target == condition else condition
    fields.resolve(source.names())
    for field in (fields.condition, fields.target):
        if field is not None and field not in source.names():
            raise ValueError(f"{name!r} has no field {field!r}; its fields are {source.names()}.")
    return source
