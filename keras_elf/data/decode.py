"""From sampled rows of token ids back to text, on every backend."""

import keras
import numpy as np

from keras_elf.data.encode import special_token_ids
from keras_elf.data.rows import check_token_ids, cut_at_end, strip_prefix


def decode_texts(token_ids, tokenizer, is_cond=None, *, vocabulary_size=None):
    """Turn rows of token ids into text: the condition dropped, cut at the first end token.

    Args:
        token_ids: int array or tensor of shape `(rows, length)`.
        tokenizer: a `keras_hub.tokenizers.Tokenizer`.
        is_cond: bool array or tensor of the same shape. The condition that starts each row.
            Defaults to `None`: there is none.
        vocabulary_size: int. Ids outside `[0, vocabulary_size)` are refused; those that the
            tokenizer has no piece for decode to nothing. Defaults to `None`: the tokenizer's
            size.

    Returns:
        A list of str, one a row.
    """
    pad_id, end_id = special_token_ids(tokenizer)
    number_of_pieces = tokenizer.vocabulary_size()
    token_ids = np.asarray(keras.ops.convert_to_numpy(token_ids))
    check_token_ids(token_ids, vocabulary_size or number_of_pieces)
    if is_cond is not None:
        is_cond = np.asarray(keras.ops.convert_to_numpy(is_cond)).astype(bool)
        if is_cond.shape != token_ids.shape:
            raise ValueError(
                "`is_cond` must have the shape of `token_ids`. Received: "
                f"{is_cond.shape} and {token_ids.shape}"
            )
        prefix_lengths = np.cumprod(is_cond, axis=1).sum(axis=1)
        token_ids = strip_prefix(token_ids, prefix_lengths, pad_id)
    token_ids = cut_at_end(token_ids, end_id, pad_id)
    has_piece = (token_ids != pad_id) & (token_ids < number_of_pieces)
    rows = [row[keep].tolist() for row, keep in zip(token_ids, has_piece, strict=True)]
    return [tokens_to_text(row, tokenizer) for row in rows]


def tokens_to_text(token_ids, tokenizer):
    """Text of a list of int; ids that the tokenizer has no piece for are passed over."""
    size = tokenizer.vocabulary_size()
    token_ids = [i for i in token_ids if i < size]
    if not token_ids:
        return ""
    # Some keras_hub tokenizers are set up to give TensorFlow strings.
    text = tokenizer.detokenize(token_ids)
    text = text.numpy() if hasattr(text, "numpy") else text
    return text.decode("utf-8") if isinstance(text, bytes) else str(text)
