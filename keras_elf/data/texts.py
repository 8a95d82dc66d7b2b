"""One pass over the texts of a source, whatever it is, with errors that name the place."""

import os

import numpy as np

from keras_elf import checks
from keras_elf.data.sources.files import read_lines


class Texts:
    """The texts of a file or an iterable that are not blank, for one pass.

    `count` says how many came. `error` keeps the exception that stopped the pass, for callers
    whose loop is not Python's and loses it.

    Args:
        source: str or path of a UTF-8 text file, compressed or not, one text a line; or an
            iterable of str.
    """

    def __init__(self, source):
        self.source, self.count, self.error = source, 0, None
        if isinstance(source, (str, os.PathLike)):
            if not os.path.isfile(source):
                raise FileNotFoundError(
                    f"`source` must be a text file or an iterable of str. Received: {source!r}, "
                    "which is not an existing file. Pass a single text as a list."
                )
            self.lines = (line.rstrip("\r\n") for _, line in read_lines(os.fspath(source)))
        elif hasattr(source, "__iter__") and not isinstance(source, (bytes, dict)):
            self.lines = source
        else:
            raise ValueError(
                "`source` must be the path of a text file or an iterable of str. "
                f"Received: {source!r}"
            )

    def __iter__(self):
        try:
            for index, line in enumerate(self.lines):
                if not isinstance(line, str):
                    raise ValueError(
                        f"`source` must yield str. Received: {line!r} (of type "
                        f"{type(line).__name__}) at index {index}"
                    )
                if not checks.is_unicode(line):
                    raise ValueError(
                        f"`source` must be valid Unicode. Received: {line!r:.80} at index {index}, "
                        "which has lone surrogates"
                    )
                if line.strip():
                    self.count += 1
                    yield line
        except (Exception, KeyboardInterrupt) as error:
            self.error = error
            raise


def draw(sentences, number, seed):
    """A uniform sample of at most `number` sentences from one pass, in bounded memory."""
    rng, kept = np.random.default_rng(seed), []
    for index, sentence in enumerate(sentences):
        if index < number:
            kept.append(sentence)
        elif (place := rng.integers(index + 1)) < number:
            kept[place] = sentence
    return kept
