"""Local text as a real TFDS data set on disk."""

import contextlib
import io
import itertools
import os
import re

import numpy as np

from keras_elf.data.sources import open_source
from keras_elf.data.sources.fields import Fields, standard_value
from keras_elf.data.sources.tfds_source import no_left_overs, tensorflow_datasets


def write_tfds(directory, name, examples, *, version="1.0.0", description="", unit="line"):
    """Write jsonl, text or records of one's own as a TFDS data set, in `array_record` files.

    `tfds.builder_from_directory`, `tfds.data_source` and `load_dataset` read it, also at random
    and without TensorFlow. Each field of the first record becomes a feature: text, or a sequence
    of int64 token ids; bare texts become the field `"text"`, bare ids `"input_ids"`. The order is
    kept. The data set appears in its place only when it is complete.

    Args:
        directory: str or path. Where data sets lie; made if it does not exist.
        name: str. Name of the data set, in snake_case.
        examples: what to write, in any form of `load_dataset`'s `spec`; or a dict from the name
            of a split to it. Without a dict the split is `"train"`.
        version: str. Such as `"1.0.0"`, the default.
        description: str. Kept in the data set's info. Defaults to `""`.
        unit: str. Document of plain text, as in `load_dataset`. Defaults to `"line"`.

    Returns:
        str, the builder's directory: `directory/name/version`.

    Raises:
        ValueError: if it exists already, there are no examples, or records differ in their
            fields (with the place).

    Example:

    ```python
    path = keras_elf.data.write_tfds("data", "my_pairs", {"train": "train.jsonl",
                                                          "test": "test.jsonl"})
    data = keras_elf.data.load_dataset(path, preprocessor, split="train")
    ```
    """
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ValueError(f"`name` must be in snake_case, such as 'my_text'. Received: {name!r}")
    if not isinstance(version, str) or not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise ValueError(f"`version` must be like '1.0.0'. Received: {version!r}")
    directory = os.path.abspath(os.path.expanduser(os.fspath(directory)))
    path = os.path.join(directory, name, version)
    if os.path.exists(path):
        raise ValueError(f"{path!r} exists already. Choose another `name` or `version`.")
    if not isinstance(examples, dict):
        examples = {"train": examples}
    sources = {}
    for split, spec in examples.items():
        if not isinstance(split, str) or not re.fullmatch(r"\w+", split):
            raise ValueError(f"A split's name must be one word. Received: {split!r}")
        sources[split] = open_source(spec, Fields(), unit=unit)
    if not sources or (first := next(iter(sources.values())).peek()) is None:
        raise ValueError("`examples` holds no records.")
    kinds = {field: kind for field, (_, kind) in _fields(*first).items()}
    with tensorflow_datasets() as tfds:
        builder = _builder(tfds, directory, name, version, description, kinds, sources)
        builder.write()
    return path


def _builder(tfds, directory, name, version, description, kinds, sources):
    text = {
        "text": lambda: tfds.features.Text(),
        "token ids": lambda: tfds.features.Tensor(shape=(None,), dtype=np.int64),
    }
    features = tfds.features.FeaturesDict({field: text[kind]() for field, kind in kinds.items()})

    class Builder(tfds.core.GeneratorBasedBuilder, skip_registration=True):
        VERSION = tfds.core.Version(version)
        problem = None

        @classmethod
        def get_metadata(cls):
            # TFDS would look for files beside the class's module.
            from tensorflow_datasets.core import dataset_metadata

            return dataset_metadata.DatasetMetadata(description=None, citation=None, tags=[])

        def _info(self):
            return tfds.core.DatasetInfo(
                builder=self, description=description, features=features, disable_shuffling=True
            )

        def _split_generators(self, dl_manager):
            return {split: self._generate_examples(split) for split in sources}

        def _generate_examples(self, split):
            try:
                count = itertools.count()
                for place, record in sources[split]:
                    yield next(count), _example(place, record, kinds)
                if not next(count):
                    raise ValueError(f"`examples` holds no records in {split!r}.")
            except Exception as error:  # TFDS wraps what it did not raise
                self.problem = error
                raise

        def write(self):
            try:
                quiet = io.StringIO()
                with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
                    self.download_and_prepare()
            except Exception:
                if self.problem is not None:
                    raise self.problem from None
                raise

    Builder.name = name
    with no_left_overs():
        return Builder(data_dir=directory, file_format="array_record")


def _fields(place, record):
    """Field names and `(value, kind)` of a record."""
    if not isinstance(record, dict):
        name = "text" if isinstance(record, (str, bytes)) else "input_ids"
        record = {name: record}
    if not record or not all(isinstance(name, str) and name for name in record):
        raise ValueError(f"{place}: must be a dict with names for its fields.")
    return {name: standard_value(place, name, value) for name, value in record.items()}


def _example(place, record, kinds):
    fields = _fields(place, record)
    if set(fields) != set(kinds):
        raise ValueError(
            f"{place}: the fields are {sorted(fields)}, those of the first record {sorted(kinds)}."
        )
    for name, (_, kind) in fields.items():
        if kind != kinds[name]:
            raise ValueError(f"{place}: {name!r} is {kind}, in the first record {kinds[name]}.")
    return {
        name: np.asarray(value, np.int64) if kind == "token ids" else value
        for name, (value, kind) in fields.items()
    }
