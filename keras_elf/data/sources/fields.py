"""From a record to its condition and target, whatever the fields are called."""

import difflib

import numpy as np

from keras_elf import checks

# Names that carry the text in the field's own data sets, most telling first.
TARGETS = ("target", "text", "input_ids", "token_ids", "summary", "content", "definition")
CONDITIONS = {
    "target": "condition",
    "input_ids": "condition_input_ids",
    "summary": "document",
    "definition": "word",
}
AUTO = "auto"


class Fields:
    """Picks condition and target out of records, and checks both.

    Args:
        target: str. Name of the field with the text; `"auto"` finds it in the first record.
        condition: str. Name of the field with the condition; `"auto"` finds the one that
            belongs to the target, `None` takes none.
        values: sequence of str. Names of fields with a whole number for each row.
    """

    def __init__(self, target=AUTO, condition=AUTO, values=()):
        for name, value in (("target", target), ("condition", condition)):
            allowed = isinstance(value, str) or (name == "condition" and value is None)
            if not allowed or value == "":
                raise ValueError(
                    f"`{name}` must be the name of a field, or 'auto'. Received: {value!r}"
                )
        if target == condition != AUTO:
            raise ValueError(
                f"`target` and `condition` must be different fields. Received: {target!r} for both"
            )
        if isinstance(values, str) or not all(isinstance(n, str) and n for n in values):
            raise ValueError(f"`values` must be a list of names of fields. Received: {values!r}")
        self.target, self.condition, self.values = target, condition, tuple(values)
        self.kinds = {}

    def key(self):
        """The fields that are in use, for a cache."""
        return [self.target, self.condition, *([list(self.values)] if self.values else [])]

    def numbers(self, place, record):
        """The `values` of a record: tuple of int."""
        if self.values and not isinstance(record, dict):
            raise ValueError(
                f"{place}: must be a dict with the fields {list(self.values)}. Received: "
                f"{record!r:.60} (of type {type(record).__name__})"
            )
        return tuple(_number(place, name, _get(place, record, name)) for name in self.values)

    def resolve(self, names):
        """Settle `"auto"` by the names of a record's fields; `None` for a bare text."""
        if names is None:
            for name in ("target", "condition"):
                field = getattr(self, name)
                if field not in (AUTO, None):
                    raise ValueError(
                        f"`{name}` {field!r} names a field, but the records are bare texts."
                    )
            self.target, self.condition = None, None
            return
        names = list(names)
        if self.target == AUTO:
            found = [name for name in TARGETS if name in names]
            if not found:
                raise ValueError(
                    f"`target` must be given: none of the fields {names} is one of {list(TARGETS)}."
                )
            self.target = found[0]
        if self.condition == AUTO:
            condition = CONDITIONS.get(self.target)
            self.condition = condition if condition in names else None

    def pick(self, place, record):
        """`(condition, target)` of a record: str, a list or array of int, or `None`."""
        if self.target == AUTO or self.condition == AUTO:
            try:
                self.resolve(record if isinstance(record, dict) else None)
            except ValueError as error:
                raise ValueError(f"{place}: {error}") from None
        if self.target is None:
            if isinstance(record, dict):
                raise ValueError(f"{place}: a dict among bare texts. Use one kind of record.")
            return None, self._checked(place, "record", record)
        if not isinstance(record, dict):
            raise ValueError(
                f"{place}: must be a dict with the field {self.target!r}. "
                f"Received: {record!r:.60} (of type {type(record).__name__})"
            )
        condition = None
        if self.condition is not None:
            condition = self._checked(place, self.condition, _get(place, record, self.condition))
        return condition, self._checked(place, self.target, _get(place, record, self.target))

    def _checked(self, place, name, value):
        value, kind = standard_value(place, name, value)
        if self.kinds.setdefault(name, kind) != kind:
            raise ValueError(
                f"{place}: {name!r} is {kind}, where the entries before it are {self.kinds[name]}."
            )
        return value


def _get(place, record, name):
    if name in record:
        return record[name]
    near = difflib.get_close_matches(name, [str(key) for key in record], n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"{place}: no field {name!r}; there are {list(record)!r:.120}.{hint}")


def _number(place, name, value):
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{place}: {name!r} must be a whole number. Received: {value!r:.60}")
    if abs(int(value)) >= 2**31:
        raise ValueError(f"{place}: {name!r} must fit 32 bits. Received: {value}")
    return int(value)


def standard_value(place, name, value):
    """A value as str or ids, and what it is."""
    if isinstance(value, (bytes, np.bytes_)):
        try:
            return value.decode("utf-8"), "text"
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{place}: {name!r} is not UTF-8 text (byte {error.start}: {error.reason})."
            ) from None
    if isinstance(value, str):
        if not checks.is_unicode(value):
            raise ValueError(
                f"{place}: {name!r} is not valid Unicode: it has lone surrogates, as JSON escapes "
                f"can make. Received: {value!r:.60}"
            )
        return value, "text"
    if value is None:
        raise ValueError(f"{place}: {name!r} is null. Remove the entry, or give it a text.")
    if hasattr(value, "detach"):  # a torch tensor, perhaps on a GPU
        value = value.detach().cpu()
    if isinstance(value, (list, tuple)) or hasattr(value, "__array__"):
        try:
            array = np.asarray(value)
        except ValueError:  # ragged
            array = np.zeros((0, 0))
        if array.ndim == 1 and (array.dtype.kind in "iu" or not array.size):
            return array, "token ids"
    raise ValueError(
        f"{place}: {name!r} must be text or a flat list of token ids. "
        f"Received: {value!r:.60} (of type {type(value).__name__})"
    )
