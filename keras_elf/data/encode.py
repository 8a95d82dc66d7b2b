"""From text to rows of token ids, with plain Python and NumPy whatever the backend."""

import warnings

import numpy as np

from keras_elf import checks
from keras_elf.data.rows import check_token_ids, make_rows


def encode_texts(
    texts,
    tokenizer,
    sequence_length,
    *,
    conditions=None,
    condition_length=None,
    pad_with="pad",
    add_end_token=True,
    vocabulary_size=None,
):
    """Tokenize texts and lay them out as rows of one fixed length.

    Warns (`UserWarning`) with the number of texts that were too long and had to be cut.

    Args:
        texts: str, list of str, or token ids in their place: a list of sequences of int or an
            int array of shape `(texts, length)`, whose trailing padding is dropped first. None
            may be empty.
        tokenizer: a `keras_hub.tokenizers.Tokenizer`, usually `keras_hub.models.T5Tokenizer`.
            Used only where there is text, and for the ids of its special tokens.
        sequence_length: int. Number of tokens in a row.
        conditions: in the forms of `texts`, as many. What each text depends on; it is put before
            it. Defaults to `None`.
        condition_length: int. Most tokens that a condition may take. Defaults to `None`: all of
            the row but one.
        pad_with: `"pad"` or `"end"`. The token that fills up a row. Defaults to `"pad"`.
        add_end_token: bool. Whether an end token follows each text that was not cut. Defaults to
            `True`.
        vocabulary_size: int. Ids outside `[0, vocabulary_size)` are refused. Defaults to `None`:
            the tokenizer's size.

    Returns:
        A dict of arrays of shape `(len(texts), sequence_length)`: `token_ids` (int32), `is_cond`
        (bool) and `is_valid` (bool), as `keras_elf.data.make_rows` describes them.

    Raises:
        ValueError: naming the entry, if a text is empty or not text, or an id is out of range.

    Example:

    ```python
    verses = keras_elf.data.king_james_verses()
    proto = keras_elf.data.train_sentencepiece(verses, vocabulary_size=2048)
    tokenizer = keras_hub.models.T5Tokenizer(proto=proto)
    rows = keras_elf.data.encode_texts(verses, tokenizer, sequence_length=48)
    ```
    """
    pad_id, end_id = special_token_ids(tokenizer)
    targets = to_token_ids("texts", texts, tokenizer, vocabulary_size=vocabulary_size)
    if conditions is not None:
        conditions = to_token_ids(
            "conditions", conditions, tokenizer, vocabulary_size=vocabulary_size
        )
    rows, number_cut = make_rows(
        targets,
        conditions,
        sequence_length=sequence_length,
        condition_length=condition_length,
        pad_id=pad_id,
        end_id=end_id,
        pad_with=pad_with,
        add_end_token=add_end_token,
    )
    warn_if_cut(number_cut, len(targets), sequence_length, condition_length)
    return rows


def to_token_ids(name, values, tokenizer, *, vocabulary_size=None):
    """Turn texts, or token ids in any common form, into lists of Python int.

    Args:
        name: str. What error messages call the values.
        values: str, list of str, string array, sequences of int, or int array or tensor. One flat
            sequence of int is one text.
        tokenizer: a `keras_hub.tokenizers.Tokenizer`.
        vocabulary_size: int. Bound of the ids. Defaults to `None`: the tokenizer's size.

    Returns:
        A list of non-empty lists of int, without trailing padding.
    """
    check_trained(tokenizer)
    values = _as_list(name, values)
    if isinstance(values[0], str):
        for index, text in enumerate(values):
            if not checks.is_unicode(text):
                raise ValueError(
                    f"`{name}` must be valid Unicode. Received: {text!r:.80} at index {index}, "
                    "which has lone surrogates"
                )
        ids = _tokenize(values, tokenizer)
    else:
        pad_id, _ = special_token_ids(tokenizer)
        ids = [_without_padding(row, pad_id) for row in values]
    for index, row in enumerate(ids):
        if not row:
            raise ValueError(
                f"`{name}` must not hold empty texts. Received: {values[index]!r} at index "
                f"{index}, which has no tokens. Remove such entries."
            )
    try:
        check_token_ids(ids, vocabulary_size or tokenizer.vocabulary_size())
    except ValueError as error:
        raise ValueError(f"`{name}`: {error}") from None
    return ids


def special_token_ids(tokenizer):
    """The ids of a tokenizer's padding and end tokens, as a tuple `(pad_id, end_id)`.

    Taken from the tokenizer's own `pad_token_id` and `end_token_id` where it has them, else by
    the names `<pad>` and `</s>`. `ValueError` if it has neither.
    """
    check_trained(tokenizer)
    ids = []
    for attribute, piece in (("pad_token_id", "<pad>"), ("end_token_id", "</s>")):
        token_id = getattr(tokenizer, attribute, None)
        if token_id is None:
            token_id = tokenizer.token_to_id(piece)
            if token_id is None or tokenizer.id_to_token(int(token_id)) != piece:
                raise ValueError(
                    f"`tokenizer` has no {piece!r} token, which ELF needs. Train one with "
                    "`keras_elf.data.train_sentencepiece`, or use T5's."
                )
        ids.append(int(token_id))
    return tuple(ids)


def check_trained(tokenizer):
    """Raise `ValueError` if a tokenizer has no vocabulary yet."""
    if hasattr(tokenizer, "proto") and tokenizer.proto is None:
        raise ValueError(
            f"`tokenizer` ({type(tokenizer).__name__}) is untrained: it has no vocabulary. Pass "
            "one with a `proto`, such as `keras_hub.models.T5Tokenizer(proto="
            "keras_elf.data.train_sentencepiece(texts, vocabulary_size))`."
        )


def warn_if_cut(number_cut, number, sequence_length, condition_length=None):
    """Warn that texts were cut, with how many and to what."""
    if number_cut:
        limits = f"`sequence_length={sequence_length}`"
        if condition_length is not None:
            limits += f" and `condition_length={condition_length}`"
        warnings.warn(
            f"{number_cut} of {number} texts were too long and were cut to {limits} tokens.",
            UserWarning,
            stacklevel=3,
        )


def _as_list(name, values):
    """A non-empty list whose entries are all str or all lists of int."""
    values = _to_python(values)
    if isinstance(values, str):
        values = [values]
    if not isinstance(values, list):
        raise ValueError(
            f"`{name}` must be text or token ids: a str, a list of str, or sequences of whole "
            f"numbers. Received: {values!r} (of type {type(values).__name__})"
        )
    if not values:
        raise ValueError(f"`{name}` must hold at least one entry. Received an empty list.")
    if all(_is_id(value) for value in values):
        values = [values]
    values = [_to_python(value) for value in values]
    is_text = isinstance(values[0], str)
    for index, value in enumerate(values):
        if isinstance(value, str) if is_text else _is_id_list(value):
            continue
        kind = "text, like the entries before it" if is_text else "text or a flat list of ids"
        raise ValueError(f"`{name}` at index {index} must be {kind}. Received: {value!r}")
    return values


def _to_python(value):
    """Bytes as str; arrays and eager tensors of any framework as (nested) lists."""
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"Text must be UTF-8. Received: {value!r:.80} ({error})") from error
    if isinstance(value, tuple):
        return list(value)
    if hasattr(value, "detach"):  # a torch tensor, perhaps on a GPU
        value = value.detach().cpu()
    if hasattr(value, "__array__") and not np.isscalar(value):
        try:
            return np.asarray(value).tolist()
        except NotImplementedError as error:  # a symbolic TensorFlow tensor
            raise TypeError(
                "Text cannot be encoded inside a `tf.data` graph. Encode it first, with "
                "`keras_elf.data.encode_texts`, and build the dataset from the rows."
            ) from error
    return value


def _is_id(value):
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_id_list(value):
    return isinstance(value, list) and all(_is_id(entry) for entry in value)


def _without_padding(ids, pad_id):
    """The ids as Python int, up to the last that is not padding."""
    stop = len(ids)
    while stop and ids[stop - 1] == pad_id:
        stop -= 1
    return [int(token_id) for token_id in ids[:stop]]


def _tokenize(texts, tokenizer):
    """Lists of int from any keras_hub tokenizer, also one set up to give framework tensors."""
    ids = tokenizer.tokenize(texts)
    ids = ids.to_list() if hasattr(ids, "to_list") else ids  # a ragged TensorFlow tensor
    return [[int(token_id) for token_id in _to_python(row)] for row in ids]
