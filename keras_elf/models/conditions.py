"""What `generate` is given, brought into rows of token ids and signals."""

import warnings

import numpy as np

from keras_elf import checks, denoiser
from keras_elf.data import check_token_ids, make_rows


def condition_rows(model, inputs, num_samples, length):
    """Rows with a condition each and everything behind it open.

    Args:
        model: `ELFGenerator`.
        inputs: str, list of str, or lists of token ids.
        num_samples: must be `None`: there is one text a condition.
        length: int. Tokens of a row.

    Returns:
        dict of `token_ids`, `is_cond`, `is_valid`, `(conditions, length)`.

    Raises:
        ValueError: for empty inputs, text without a preprocessor, ids out of range, another
            length than the preprocessor's.
    """
    if num_samples is not None:
        raise ValueError(
            "`num_samples` is for unconditional text: with `inputs` there is one text per "
            f"condition. Received: num_samples={num_samples!r}"
        )
    if not isinstance(inputs, (str, dict)):
        if not hasattr(inputs, "__len__") and not hasattr(inputs, "__iter__"):
            raise ValueError(
                f"`inputs` must be text or a list of texts or ids. Received: {inputs!r}"
            )
        inputs = inputs if hasattr(inputs, "__len__") else list(inputs)
        if not len(inputs):
            raise ValueError("`inputs` must hold at least one condition. Received: an empty list")
    if model.preprocessor is None:
        return _rows_of_ids(model, inputs, length)
    rows = model.preprocessor.generate_preprocess(inputs)
    if rows["token_ids"].shape[1] != length:
        raise ValueError(
            "`length` must be the preprocessor's sequence_length "
            f"{rows['token_ids'].shape[1]} where there are conditions. Received: {length}"
        )
    return rows


def warn_of_condition(model):
    """Warn where a model is given a condition and has been trained on none."""
    if getattr(model, "conditional", None) is False:
        warnings.warn(
            "`inputs` are conditions, and this model was trained on texts without any: it does "
            "not know what to do with them. For texts that go on from a beginning, train on pairs "
            '({"condition": ..., "target": ...}).',
            UserWarning,
            stacklevel=3,
        )


def signal_rows(network, signals, total):
    """`(dict of arrays (total,), total)`: the further values of each row.

    Args:
        network: see `keras_elf.Denoiser`.
        signals: dict from names in the network's `signals` to a number for all rows or one a
            row; or `None`. What is missing is the signal's "none".
        total: int, or `None`: as many as there are numbers, or one.

    Raises:
        ValueError: for names that the network does not know, and other numbers of rows.
    """
    if signals is not None and not isinstance(signals, dict):
        raise ValueError(f"`signals` must be a dict such as {{'label': 3}}. Received: {signals!r}")
    known, given = denoiser.signals(network), dict(signals or {})
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise ValueError(
            f"`signals` holds {unknown}, which the network does not read. It reads: "
            f"{sorted(known) or 'none'}"
        )
    given = {name: np.asarray(value) for name, value in given.items()}
    for name, value in given.items():
        if value.dtype.kind not in "iufb":
            raise ValueError(f"`signals[{name!r}]` must be numbers. Received: {value!r:.80}")
    if total is None:
        total = max([1, *(len(value) for value in given.values() if value.ndim)])
    for name, value in given.items():
        if value.ndim > 1 or (value.ndim and len(value) != total):
            raise ValueError(
                f"`signals[{name!r}]` must be a number or one a text, of which there are {total}. "
                f"Received shape: {value.shape}"
            )
    for name, value in given.items():
        # In the wider of the two: a "none" of 0.5 must not become 0 beside whole numbers.
        whole = isinstance(known[name], (int, type(None))) and value.dtype.kind in "iub"
        given[name] = value.astype("int32" if whole else "float32")
    missing = [name for name, empty in known.items() if empty is None and name not in given]
    if missing:
        raise ValueError(
            f"`signals` must hold {missing}: the network has no value for none of them. Received: "
            f"{sorted(given)}"
        )
    full = {
        name: np.broadcast_to(given.get(name, empty), (total,)) for name, empty in known.items()
    }
    denoiser.check_signals(network, full if given else {})
    return (full if given else {}), total


def _rows_of_ids(model, inputs, length):
    if isinstance(inputs, str) or any(isinstance(row, str) for row in inputs):
        raise ValueError(
            "`inputs` must be lists of token ids: this model has no preprocessor for text."
        )
    conditions = [[checks.integer("inputs", i) for i in np.atleast_1d(row)] for row in inputs]
    for number, row in enumerate(conditions):
        if not 0 < len(row) < length:
            raise ValueError(
                f"Each condition must have 1 to {length - 1} tokens. Received: "
                f"{len(row)} tokens in condition {number}"
            )
        check_token_ids(np.array(row), model.backbone.vocabulary_size)
    rows, _ = make_rows(
        [[]] * len(conditions),
        conditions,
        sequence_length=length,
        pad_id=0,
        end_id=0,
        add_end_token=False,
    )
    rows["is_valid"][:] = True
    return rows
