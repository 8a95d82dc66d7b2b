"""A tokenized corpus: all ids in one array, and where each document starts. In memory or on disk.

On disk the arrays are `.npy` files that are mapped, not read, so that a corpus larger than the
memory can be trained on; they are written beside their place and moved there when complete.
"""

import json
import os
import shutil

import numpy as np

_META = "meta.json"
FORMAT = 1


class Column:
    """Documents one after the other: `tokens` and the `offsets` between them."""

    def __init__(self, tokens, offsets):
        self.tokens, self.offsets = tokens, offsets

    def __len__(self):
        return len(self.offsets) - 1

    def __getitem__(self, index):
        return self.tokens[self.offsets[index] : self.offsets[index + 1]]

    def lengths(self):
        """Number of tokens of each document."""
        return np.diff(self.offsets)


class TokenStore:
    """Targets and, for conditional corpora, their conditions, as `Column`s.

    Args:
        target: `Column`.
        condition: `Column` of the same length, or `None`.
        skipped: int. Number of records that were left out because they were blank.
        values: dict from names to int32 arrays, a number a document. Defaults to `None`: none.
    """

    def __init__(self, target, condition=None, skipped=0, values=None):
        self.target, self.condition, self.skipped = target, condition, skipped
        self.values = values or {}

    @classmethod
    def build(cls, pairs, dtype, directory=None, skipped=lambda: 0, values=()):
        """Store pairs as they come.

        Args:
            pairs: iterable of `(condition, target, values)`: int sequences, and a tuple of int;
                the condition may be `None` throughout.
            dtype: dtype of the ids.
            directory: str. Where to write. Defaults to `None`: the store is held in memory.
            skipped: function that gives the number of skipped records afterwards.
            values: sequence of str. Names of the values.
        """
        if directory is None:
            return cls._filled(pairs, lambda name, kind: _Growing(kind), dtype, skipped, values)
        beside = f"{directory}.{os.getpid()}.tmp"
        shutil.rmtree(beside, ignore_errors=True)
        try:
            os.makedirs(beside)
            store = cls._filled(
                pairs,
                lambda name, kind: _Written(os.path.join(beside, name), kind),
                dtype,
                skipped,
                values,
            )
            if store.target is None:
                return store
            meta = {
                "format": FORMAT,
                "documents": len(store.target),
                "conditional": store.condition is not None,
                "skipped": store.skipped,
                "values": list(values),
            }
            with open(os.path.join(beside, _META), "w", encoding="utf-8") as file:
                json.dump(meta, file)
            del store
            try:
                os.replace(beside, directory)
            except OSError:
                if not os.path.isfile(os.path.join(directory, _META)):
                    raise
                # Another process was faster; both wrote the same.
        except OSError as error:
            raise OSError(
                f"The tokens cannot be written below `cache_dir`: {error}. Nothing was left there."
            ) from error
        finally:
            shutil.rmtree(beside, ignore_errors=True)
        return cls.open(directory)

    @classmethod
    def _filled(cls, pairs, make, dtype, skipped, values):
        columns, files = {}, []
        try:
            for n in range(len(values)):
                files.append(make(_value_file(n), "int32"))
            numbers = files[:]
            for condition, target, row in pairs:
                for file, number in zip(numbers, row, strict=True):
                    file.add([number])
                for name, ids in (("condition", condition), ("target", target)):
                    if ids is None:
                        continue
                    if name not in columns:
                        columns[name] = (
                            make(f"{name}.npy", dtype),
                            make(f"{name}_offsets.npy", "int64"),
                        )
                        files.extend(columns[name])
                        columns[name][1].add([0])
                    tokens, offsets = columns[name]
                    tokens.add(ids)
                    offsets.add([tokens.count])
            done = {name: Column(*(f.array() for f in pair)) for name, pair in columns.items()}
            found = {n: file.array() for n, file in zip(values, numbers, strict=True)}
        finally:
            for file in files:
                file.close()
        return cls(done.get("target"), done.get("condition"), skipped(), found)

    @classmethod
    def open(cls, directory):
        """Map the store in a directory; `None` if there is none.

        Raises:
            ValueError: if it is damaged.
        """
        path = os.path.join(directory, _META)
        if not os.path.isfile(path):
            return None
        try:
            with open(path, encoding="utf-8") as file:
                meta = json.load(file)
            names = ["target", "condition"] if meta["conditional"] else ["target"]
            columns = [_mapped(directory, name, meta["documents"]) for name in names]
            values = {
                name: _load(os.path.join(directory, _value_file(n)))
                for n, name in enumerate(meta.get("values", ()))
            }
            if any(len(numbers) != meta["documents"] for numbers in values.values()):
                raise ValueError("other numbers of values than of documents")
            if meta["format"] != FORMAT:
                raise ValueError(f"format {meta['format']}")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"The tokens kept in {directory!r} are damaged ({error}). Delete the directory; "
                "they are made anew."
            ) from None
        return cls(*columns, *[None] * (2 - len(columns)), meta["skipped"], values)


def _value_file(number):
    return f"value_{number}.npy"


def _mapped(directory, name, documents):
    tokens, offsets = (
        _load(os.path.join(directory, f"{name}{suffix}.npy")) for suffix in ("", "_offsets")
    )
    if len(offsets) != documents + 1 or offsets[-1] != len(tokens):
        raise ValueError(f"{name}: {len(tokens)} tokens do not fit the offsets")
    return Column(tokens, offsets)


def _load(path):
    # An empty file cannot be mapped.
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"{os.path.basename(path)} holds {array.dtype} {array.shape}")
    return array


class _Growing:
    """An array that grows in memory."""

    def __init__(self, dtype):
        self.dtype, self.parts, self.pending = np.dtype(dtype), [], []
        self.count = self.waiting = 0

    def add(self, values):
        self.pending.append(np.asarray(values, self.dtype))
        self.count += len(values)
        self.waiting += len(values)
        if self.waiting > 2**16:
            self._settle()

    def _settle(self):
        if self.pending:
            self._keep(np.concatenate(self.pending))
        self.pending, self.waiting = [], 0

    def _keep(self, array):
        self.parts.append(array)

    def array(self):
        self._settle()
        return np.concatenate(self.parts) if self.parts else np.zeros(0, self.dtype)

    def close(self):
        pass


class _Written(_Growing):
    """An array that grows in a `.npy` file."""

    def __init__(self, path, dtype):
        super().__init__(dtype)
        self.path, self.file = path, open(path, "wb")
        self._write_header()
        self.start = self.file.tell()

    def _write_header(self):
        # NumPy leaves room in the header for the length to grow.
        header = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False}
        np.lib.format.write_array_header_1_0(self.file, {**header, "shape": (self.count,)})

    def _keep(self, array):
        self.file.write(array.tobytes())

    def array(self):
        self._settle()
        self.file.seek(0)
        self._write_header()
        if self.file.tell() != self.start:
            raise OSError(f"the header of {self.path!r} has outgrown its place")
        self.file.close()
        return np.load(self.path, mmap_mode="r", allow_pickle=False)

    def close(self):
        self.file.close()
