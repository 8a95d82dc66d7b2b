"""The corpus in the box: the verses of the King James Bible."""

import importlib.resources
import lzma


def king_james_verses():
    """The verses of the King James Bible, in order, without book or verse numbers.

    31,103 verses, some 790,000 words of public-domain text (`data/corpora/NOTICE` has the details
    for the United Kingdom), read from compressed package data. It is enough for a demonstration
    or a test on real text without a network, and far too little for a language model of use.

    Returns:
        A new list of str, one a verse.

    Example:

    ```python
    verses = keras_elf.data.king_james_verses()
    verses[0]  # "In the beginning God created the heaven and the earth."
    ```
    """
    file = importlib.resources.files("keras_elf.data") / "corpora" / "kjv_verses.txt.xz"
    return lzma.decompress(file.read_bytes()).decode("utf-8").splitlines()
