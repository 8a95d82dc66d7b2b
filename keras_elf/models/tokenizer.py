"""What ELF asks of a tokenizer, and T5's from a `transformers` directory."""

import json
import os

from keras_elf import checks
from keras_elf.keras_hub_quietly import keras_hub


def check_tokenizer(tokenizer):
    """Raise `ValueError` if ELFPreprocessor cannot work with a tokenizer."""
    if not isinstance(tokenizer, keras_hub.tokenizers.Tokenizer):
        raise ValueError(
            "`tokenizer` must be a `keras_hub.tokenizers.Tokenizer`, such as "
            f"`keras_hub.models.T5Tokenizer(proto=...)`. Received: {tokenizer!r}"
        )
    if "int" not in tokenizer.compute_dtype:
        raise ValueError(
            f"`tokenizer` must give token ids. Received one with dtype={tokenizer.compute_dtype!r}"
        )
    for name in ("sequence_length", "add_bos", "add_eos"):
        if getattr(tokenizer, name, None):
            raise ValueError(
                f"`tokenizer` must leave cutting, padding and special tokens to ELFPreprocessor. "
                f"Received one with {name}={getattr(tokenizer, name)!r}"
            )


def load_transformers_tokenizer(directory):
    """T5's tokenizer from `spiece.model`.

    `transformers` counts sentinel ids (`<extra_id_0>` and so on) behind the pieces as part of the
    vocabulary: 32,000 pieces and 100 sentinels make the 32,100 ids of T5 that ELF's published
    models have.

    Args:
        directory: str or path of a directory with `spiece.model` and, if it differs from the
            default of 100, the number `extra_ids` in `tokenizer_config.json`.

    Returns:
        A tuple `(tokenizer, vocabulary_size)`: a `keras_hub.models.T5Tokenizer`, and the number of
        its pieces and the sentinels together.
    """
    directory = os.fspath(directory)
    path = os.path.join(directory, "spiece.model")
    if not os.path.isfile(path):
        raise ValueError(
            "`directory` must hold a T5 tokenizer as `transformers` saves it. Received: "
            f"{directory!r}, which has no file 'spiece.model'"
        )
    extra_ids = 100
    config_path = os.path.join(directory, "tokenizer_config.json")
    if os.path.isfile(config_path):
        try:
            with open(config_path, encoding="utf-8") as file:
                extra_ids = json.load(file).get("extra_ids", extra_ids)
        except (ValueError, AttributeError) as error:
            raise ValueError(f"{config_path!r} is damaged: {error}") from error
        checks.integer(f"extra_ids in {config_path}", extra_ids, minimum=0)
    with open(path, "rb") as file:
        proto = file.read()
    try:
        tokenizer = keras_hub.models.T5Tokenizer(proto=proto)
    except Exception as error:  # whatever SentencePiece or TensorFlow Text says of a broken file
        raise ValueError(f"{path!r} is not a SentencePiece model of T5: {error}") from error
    return tokenizer, tokenizer.vocabulary_size() + extra_ids
