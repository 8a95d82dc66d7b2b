"""The checks that data in memory get, for a single batch, on the host and in NumPy."""

import functools

import keras
import numpy as np

from keras_elf import denoiser
from keras_elf.data import check_token_ids

MASKS = ("is_cond", "is_valid", "segments")


class BatchCheck:
    """Brings a batch into the form `(x,)` or `(x, None, sample_weight)`, or says what is wrong.

    An id outside the vocabulary makes NaN of all weights on JAX and ends in an error of the
    device elsewhere, so it is looked for here, by the least and the greatest id of each batch.

    Args:
        vocabulary_size: int. Ids must lie in `[0, vocabulary_size)`.
        signals: names of further values, one a row, that the network takes.
        preprocessor: function from text, or lists of ids, to a dict of arrays; or `None`.
        check_signals: function that raises `ValueError` for a dict of further values that the
            network refuses; or `None`.

    Attributes:
        batches: int. How many were looked at.
        error: the last error raised, or `None`. TensorFlow hides errors of Python in its own.
    """

    def __init__(self, vocabulary_size, signals=(), preprocessor=None, check_signals=None):
        self.vocabulary_size, self.signals = vocabulary_size, tuple(signals)
        self.check_signals = check_signals
        self.preprocessor = preprocessor
        self.batches, self.error = 0, None

    @classmethod
    def of(cls, model):
        """The check of an `ELFGenerator`'s batches."""
        names = denoiser.signals(model.backbone)
        check = functools.partial(denoiser.check_signals, model.backbone)
        return cls(model.backbone.vocabulary_size, names, model.preprocessor, check)

    def __call__(self, batch, number=None):
        """The batch as a tuple.

        Args:
            batch: a dict of arrays, an array of ids, text, or a tuple of one of them and
                optionally `None` for `y` and weights `(rows,)`.
            number: int or `None`. Number of the batch, for the error.

        Raises:
            ValueError: naming the batch, what came and what is allowed.
        """
        self.batches += 1
        try:
            return self._checked(batch)
        except ValueError as error:
            place = "" if number is None else f"Batch {int(number)}: "
            self.error = ValueError(f"{place}{error}")
            raise self.error from None

    def _checked(self, batch):
        x, y, weight = _unpacked(batch)
        if y is not None:
            raise ValueError(
                "`y` must be None: the text is its own target. Give `(x,)`, a dict, or "
                f"`(x, None, sample_weight)`. Received: {_short(y)}"
            )
        x = self._rows(x)
        ids = self._check_ids(x["token_ids"])
        for name in x:
            if name in MASKS and x[name] is not None:
                _check_shape(name, x[name], ids.shape, "that of token_ids")
            elif name in self.signals:
                _check_shape(name, x[name], ids.shape[:1], "one value a row")
        if self.check_signals is not None:
            self.check_signals({name: on_host(x[name]) for name in self.signals if name in x})
        if weight is None:
            return (x,)
        return (x, None, check_weights(weight, ids.shape[0]))

    def _rows(self, x):
        if isinstance(x, dict) and "token_ids" in x:
            allowed = ("token_ids", *MASKS, *self.signals)
            unknown = sorted(set(x) - set(allowed))
            if unknown:
                raise ValueError(f"`x` has unknown keys {unknown}. Allowed: {list(allowed)}")
            return {name: _array(v) for name, v in x.items() if v is not None}
        if isinstance(x, dict) and not set(x) & {"target", "condition"}:
            raise ValueError(
                "A batch as a dict must have the key 'token_ids', or 'target' for text. "
                f"Received the keys: {sorted(x, key=str)}"
            )
        if hasattr(x, "shape") and not _is_text(x):
            return {"token_ids": x}
        if self.preprocessor is None:
            raise ValueError(
                "This model has no preprocessor, so a batch must be token ids: an int array "
                f"(rows, length) or a dict with 'token_ids'. Received: {_short(x)}"
            )
        values = {}
        if isinstance(x, dict):
            values = {name: _array(x[name]) for name in self.signals if name in x}
            x = {name: value for name, value in x.items() if name not in values}
        return {**self.preprocessor(_python_text(x)), **values}

    def _check_ids(self, ids):
        ids = on_host(ids)
        if not np.issubdtype(ids.dtype, np.integer):
            raise ValueError(f"`token_ids` must be whole numbers. Received dtype: {ids.dtype}")
        if ids.ndim != 2 or 0 in ids.shape:
            raise ValueError(
                f"`token_ids` must have shape (rows, length), both above 0. Received: {ids.shape}"
            )
        if ids.min() < 0 or ids.max() >= self.vocabulary_size:
            check_token_ids(ids, self.vocabulary_size)
        return ids


def check_weights(weight, rows):
    """`sample_weight` as float32 `(rows,)`; raises `ValueError` for what cannot be weights."""
    weight = on_host(weight)
    if weight.shape != (rows,) or weight.dtype.kind not in "fiub":
        raise ValueError(
            f"`sample_weight` must be numbers, one a row: shape ({rows},). Received: shape "
            f"{weight.shape}, dtype {weight.dtype}"
        )
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError(f"`sample_weight` must be finite and >= 0. Received: {_short(weight)}")
    return weight.astype("float32")


def without_targets(batch):
    """A batch with weights in the form that Keras's datasets can serve on every backend.

    On TensorFlow Keras takes a `None` in a tuple from a generator alone. Targets without a
    column stand in for it, which `ELFGenerator.compute_loss` takes for none.
    """
    if len(batch) < 3 or keras.backend.backend() != "tensorflow":
        return batch
    return batch[0], np.zeros((len(batch[2]), 0), "float32"), batch[2]


def on_host(value):
    """An array or tensor of any library as NumPy."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    return np.asarray(value)


def _unpacked(batch):
    # As everywhere in Keras a tuple is (x, y, weights); of a list, what looks like one.
    if (
        isinstance(batch, list)
        and batch
        and (isinstance(batch[0], dict) or hasattr(batch[0], "shape"))
    ):
        batch = tuple(batch)
    if not isinstance(batch, tuple) or all(isinstance(part, (str, bytes)) for part in batch):
        return batch, None, None
    if not 1 <= len(batch) <= 3:
        raise ValueError(
            "A batch as a tuple must be `(x,)` or `(x, None, sample_weight)`. Received a tuple "
            f"of {len(batch)}"
        )
    return (*batch, None, None)[:3]


def _array(value):
    return value if hasattr(value, "shape") else np.asarray(value)


def _is_text(x):
    return getattr(getattr(x, "dtype", None), "kind", "") in "USO" and hasattr(x, "tolist")


def _python_text(x):
    if isinstance(x, dict):
        return {name: _python_text(value) for name, value in x.items()}
    values = x.tolist() if _is_text(x) else x
    if isinstance(values, bytes):
        return values.decode("utf-8")
    if not isinstance(values, (list, tuple)):
        return values
    return [v.decode("utf-8") if isinstance(v, bytes) else v for v in values]


def _check_shape(name, value, expected, words):
    received = tuple(value.shape)
    if received != tuple(expected):
        raise ValueError(
            f"`{name}` must have the shape {tuple(expected)}, {words}. Received: {received}"
        )


def _short(value):
    kind = type(value).__name__
    shape = getattr(value, "shape", None)
    return f"{kind} {value!r:.80}" if shape is None else f"{kind} of shape {tuple(shape)}"
