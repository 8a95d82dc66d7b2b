"""Unigram entropy: how varied the tokens of a text are."""

import numpy as np

from keras_elf.evaluation.texts import check_ids, check_texts


def unigram_entropy(texts, tokenizer=None):
    """Unigram entropy of each text's own tokens, in nats, averaged over the texts.

    It tells text from collapsed text, which a perplexity alone rewards: a word repeated without
    end has entropy 0 and a perplexity close to 1. Entropies under different tokenizers, or of
    texts of different lengths, cannot be compared.

    Args:
        texts: list of str, or list of sequences of token ids.
        tokenizer: for str: a `keras_hub.tokenizers.Tokenizer`, what `load_judge` returns, or any
            callable from a list of str to as many sequences of ids. Published figures are under
            the tokenizer of the judge, GPT-2's. Defaults to `None`, for ids.

    Returns:
        float, in `[0, log(tokens of a text)]`.

    Raises:
        ValueError: for no or empty texts, other types, or str without a tokenizer.

    Source: ELF, arXiv 2605.10938 (evaluation).
    """
    is_ids = hasattr(texts, "__iter__") and not isinstance(texts, (str, bytes, dict))
    texts = list(texts) if is_ids else texts
    is_ids = is_ids and bool(texts) and not any(isinstance(t, (str, bytes)) for t in texts)
    if is_ids:
        rows = check_ids("texts", texts)
    else:
        texts = check_texts("texts", texts)
        tokenize = getattr(tokenizer, "token_ids", tokenizer)
        if not callable(tokenize):
            raise ValueError(
                "`tokenizer` must be a tokenizer where `texts` are str: entropy is counted in "
                f"tokens. Received: {tokenizer!r}"
            )
        rows = tokenize(texts)
    return float(np.mean(entropies(rows)))


def entropies(rows):
    """Unigram entropy of each row in nats, `(rows,)` float64; ValueError for an empty row."""
    result = np.empty(len(rows))
    for index, row in enumerate(rows):
        if not len(row):
            raise ValueError(f"`texts` must not hold empty texts: index {index} has no tokens")
        _, counts = np.unique(np.asarray(row), return_counts=True)
        shares = counts / counts.sum()
        result[index] = max(0.0, -(shares * np.log(shares)).sum())
    return result
