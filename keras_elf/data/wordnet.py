"""Pairs in the box: words of WordNet and their definitions."""

import importlib.resources
import lzma


def wordnet_definitions():
    """Words of WordNet 3.0 with a definition each: a small conditional task.

    20,000 pairs in a random order that is always the same, so any slice is a fair sample; each
    word is there once. Read from compressed package data, whose licence is in
    `data/corpora/NOTICE`.

    Returns:
        A tuple `(words, definitions)` of new lists of str.

    Example:

    ```python
    words, definitions = keras_elf.data.wordnet_definitions()
    elf.fit({"condition": words[1000:], "target": definitions[1000:]}, batch_size=64)
    ```
    """
    file = importlib.resources.files("keras_elf.data") / "corpora" / "wordnet_definitions.tsv.xz"
    lines = lzma.decompress(file.read_bytes()).decode("utf-8").splitlines()
    words, definitions = zip(*(line.split("\t") for line in lines), strict=True)
    return list(words), list(definitions)
