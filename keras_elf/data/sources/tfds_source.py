"""TFDS data sets by name or directory, through their random-access data source.

Nothing here needs TensorFlow: TFDS reads `array_record` files without it.
"""

import contextlib
import json
import os
import sys
import tempfile

from keras_elf.data.sources.files import fingerprint
from keras_elf.data.sources.source import Source

# The fields of data sets that ELF's published models know: (condition, target).
KNOWN = {"xsum": ("document", "summary"), "lm1b": (None, "text")}
TRANSLATIONS = ("wmt14_translate", "wmt15_translate", "wmt16_translate", "wmt17_translate",
                "wmt18_translate", "wmt19_translate", "wmt_t2t_translate", "flores",
                "ted_hrlr_translate", "ted_multi_translate", "opus", "para_crawl")  # fmt: skip
_BLOCK = 256


class TfdsSource(Source):
    """The examples of a split, in the order of its files.

    Args:
        builder: a TFDS builder.
        split: str. Name of a split, or an expression such as `"train[:1%]"`.
    """

    def __init__(self, builder, split):
        self.builder, self.split = builder, split
        splits = list(builder.info.splits)
        base = split.split("[")[0].split("+")[0].strip()
        if splits and base not in (*splits, "all"):
            raise ValueError(
                f"`split` must be one of {splits} of {builder.name!r}, or part of one, such as "
                f"'{splits[0]}[:10%]'. Received: {split!r}"
            )
        with tensorflow_datasets():
            try:
                self.data = builder.as_data_source(split=split)
            except (AssertionError, NotImplementedError, ValueError, OSError) as error:
                raise ValueError(_advice(builder, error)) from None

    def names(self):
        """The names of the fields, sorted: TFDS has them in a new order each time."""
        return sorted(self.builder.info.features)

    def __iter__(self):
        for start in range(0, len(self.data), _BLOCK):
            indices = list(range(start, min(start + _BLOCK, len(self.data))))
            with tensorflow_datasets():
                try:
                    records = self.data.__getitems__(indices)  # twice as fast as one by one
                except TypeError:  # the data source of `tfds.testing.mock_data` cannot do that
                    records = [self.data[index] for index in indices]
            for index, record in zip(indices, records, strict=True):
                yield f"{self.builder.name!r} {self.split}, example {index}", record

    def fingerprint(self):
        directory = str(self.builder.data_path)
        if not os.path.isdir(directory):
            return None
        paths = sorted(e.path for e in os.scandir(directory) if e.is_file())
        return f"{self.split}-{fingerprint(paths)}"


def open_tfds(name, split, data_dir=None):
    """A `TfdsSource` for a name (`"xsum"`, `"wmt14_translate/de-en"`) or a builder's directory."""
    with tensorflow_datasets() as tfds, no_left_overs():
        try:
            if os.path.isdir(name):
                builder = tfds.builder_from_directory(name)
            else:
                builder = tfds.builder(name, data_dir=data_dir)
        except Exception as error:  # TFDS has errors of many kinds for names and files
            message = str(error).strip().splitlines() or [type(error).__name__]
            hint = ""
            if name.split("/")[0].split(":")[0].lower() in ("openwebtext", "owt"):
                hint = (
                    " TFDS has no builder for it: pass the path of your copy of "
                    "openwebtext.tar.xz, or of text or jsonl files."
                )
            raise ValueError(f"TFDS cannot open {name!r}: {message[0]:.200}.{hint}") from None
    return TfdsSource(builder, split)


def default_fields(name, names):
    """`(condition, target)` of a data set that is known by its name, else `None`."""
    parts = name.split("/")
    base = parts[0].split(":")[0]
    if base in KNOWN and set(KNOWN[base]) - {None} <= set(names):
        return KNOWN[base]
    if base in TRANSLATIONS and len(names) == 2:
        pair = parts[1].split(":")[0] if len(parts) > 1 else ""
        ordered = [part for part in pair.replace("_to_", "-").split("-") if part in names]
        if len(ordered) == 2:
            return tuple(ordered)
    return None


def is_known_name(spec):
    """Whether a bare name is meant for TFDS."""
    base = spec.split("/")[0].split(":")[0]
    return base in KNOWN or base in TRANSLATIONS or base == "openwebtext"


def is_builder_directory(path):
    """Whether a directory holds a prepared TFDS data set."""
    try:
        with open(os.path.join(path, "dataset_info.json"), encoding="utf-8") as file:
            info = json.load(file)
    except (OSError, ValueError):
        return False
    # `datasets` writes a file of this name as well.
    return isinstance(info, dict) and "splits" in info and "fileFormat" in info


@contextlib.contextmanager
def tensorflow_datasets():
    """The module, with what it imports later at hand.

    TFDS 4.9 imports `importlib_resources`, a backport that it does not ask for; the module of
    Python 3.11 itself does the same.
    """
    try:
        import importlib_resources  # noqa: F401
    except ImportError:
        import importlib.resources.abc

        lent = sys.modules.setdefault("importlib_resources", importlib.resources)
    else:
        lent = None
    try:
        import tensorflow_datasets as tfds

        yield tfds
    except ImportError as error:
        raise ValueError(
            f"TFDS data sets need `tensorflow-datasets`: pip install 'keras-elf[data]' ({error})"
        ) from None
    finally:
        if lent is not None and sys.modules.get("importlib_resources") is lent:
            del sys.modules["importlib_resources"]


@contextlib.contextmanager
def no_left_overs():
    """For the making of a builder: TFDS makes a temporary directory each time and forgets it."""
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        tempfile.tempdir = directory
        try:
            yield
        finally:
            tempfile.tempdir = before


def _advice(builder, error):
    message = (str(error).strip().splitlines() or [type(error).__name__])[0]
    directory = str(builder.data_path)
    if not os.path.isdir(directory):
        return (
            f"{builder.name!r} is not prepared in {directory!r}. Prepare it once, on a machine "
            f"with a network: tfds.builder({builder.name!r}, file_format='array_record')"
            ".download_and_prepare(); or name its place in `data_dir`."
        )
    return (
        f"{builder.name!r} in {directory!r} cannot be read at random: {message:.200}. It must be "
        "prepared with file_format='array_record'."
    )
