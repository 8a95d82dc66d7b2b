"""Training of a SentencePiece tokenizer on text of one's own."""

import contextlib
import os
import re
import warnings

from keras_elf import checks
from keras_elf.atomic_file import replaced
from keras_elf.data.sentencepiece_training import Training
from keras_elf.data.texts import Texts, draw

MODEL_TYPES = ("unigram", "bpe", "char", "word", "whole_words", "auto")
NORMALIZATIONS = ("nmt_nfkc", "nmt_nfkc_cf", "nfkc", "nfkc_cf", "identity")


def train_sentencepiece(
    source,
    vocabulary_size=None,
    path=None,
    *,
    model_type="unigram",
    max_sentences=None,
    seed=0,
    character_coverage=None,
    byte_fallback=False,
    normalization="nmt_nfkc",
    keep_whitespace=False,
):
    """Train a SentencePiece model with T5's special tokens.

    Ids 0, 1 and 2 are `<pad>`, `</s>` (end) and `<unk>`, and there is no token for a beginning, as
    in T5. The same text and arguments give the same bytes. The result works in
    `keras_hub.models.T5Tokenizer(proto=...)`, with and without TensorFlow.

    By default tokens lose some of the text, as in T5: runs of blanks, tabs and line ends become
    one blank, those at the ends of a text vanish, and so do zero-width joiners, which the
    spelling of Persian and Hindi needs; compatibility forms ("\ufb01", "\u00bd") become plain
    ones. `normalization="identity"` with `keep_whitespace=True` gives any text back exactly,
    but for characters without a piece.

    Args:
        source: str or path of a UTF-8 text file, one text a line; or an iterable of str. Blank
            lines are skipped.
        vocabulary_size: int. Number of pieces, with the three special ones; for `"auto"` the
            most there may be. Defaults to `None`: a size that suits the text, 4 times the square
            root of its number of characters, between 256 and 32,000, or what the text has
            pieces for, if that is less.
        path: str or path. Where to write the model; an existing file is replaced only when the
            new one is complete. Defaults to `None`: nowhere.
        model_type: `"unigram"`, `"bpe"`, `"char"`, `"word"` (of SentencePiece), `"whole_words"`
            or `"auto"`. With `"whole_words"` the most frequent words are pieces, marks such as
            commas are pieces of their own, and words without a piece are spelled by known parts
            and single characters. `"auto"` takes whole words where at most 4,096 pieces of
            words that occur at least twice cover 98 % of the running words (commands, names,
            templates), and unigram elsewhere. Defaults to `"unigram"`, T5's.
        max_sentences: int. Train on at most so many texts, drawn uniformly from all. Bounds the
            memory on large corpora. Defaults to `None`: all.
        seed: int. Seed of that draw. Defaults to `0`.
        character_coverage: float in (0, 1]. Share of the corpus's characters that get a piece;
            the rarest become `<unk>`. Defaults to `None`: 1 for whole words, else 0.9995.
        byte_fallback: bool. Whether unknown characters become pieces for their UTF-8 bytes
            instead of `<unk>`; takes 256 pieces. Defaults to `False`.
        normalization: `"nmt_nfkc"`, `"nmt_nfkc_cf"` (the same in lower case), `"nfkc"`,
            `"nfkc_cf"` or `"identity"`: SentencePiece's rule of what is done to characters, in
            training and in use. Defaults to `"nmt_nfkc"`, T5's.
        keep_whitespace: bool. Whether all blanks of a text stay, at its ends too; tabs and line
            ends need `normalization="identity"` besides. Defaults to `False`.

    Returns:
        bytes, the serialised model.

    Warns:
        UserWarning: where the text has joiners, line ends, tabs or indents that the settings lose.

    Raises:
        ValueError: if the corpus holds no text, is not UTF-8 (with the line), or has too few or
            too many different pieces for `vocabulary_size` (with the nearest size that works).
        OSError: if the file cannot be read, or the target cannot be written. Nothing is left
            half written.

    Example:

    ```python
    proto = keras_elf.data.train_sentencepiece("corpus.txt", 8000, "corpus.spm")
    tokenizer = keras_hub.models.T5Tokenizer(proto=proto)
    proto = keras_elf.data.train_sentencepiece(["turn left", "go on"], model_type="auto")
    ```
    """
    # SentencePiece counts in 32 bits.
    if vocabulary_size is not None:
        checks.integer("vocabulary_size", vocabulary_size, minimum=4, maximum=2**31 - 1)
    checks.choice("model_type", model_type, MODEL_TYPES)
    checks.integer("seed", seed, minimum=0)
    if character_coverage is not None:
        checks.number("character_coverage", character_coverage, minimum=0, maximum=1)
    checks.choice("normalization", normalization, NORMALIZATIONS)
    texts = Texts(source)
    sentences = iter(texts)
    if max_sentences is not None:
        checks.integer("max_sentences", max_sentences, minimum=1)
        sentences = iter(draw(sentences, max_sentences, seed))
    exact = normalization == "identity"
    lossy = {}
    if not exact:
        lossy["zero-width joiners"] = re.compile("[\u200c\u200d]")
    if not (exact and keep_whitespace):
        lossy["line ends and tabs"] = re.compile("[\n\t]")
    if not keep_whitespace:
        lossy["indents"] = re.compile("^  ", re.MULTILINE)
    lost = set()
    sentences = _watched(sentences, lossy, lost)
    settings = {
        "byte_fallback": byte_fallback,
        "normalization_rule_name": normalization,
        "remove_extra_whitespaces": not keep_whitespace,
    }
    with _replacing(path) as write:
        training = Training(texts, sentences, character_coverage, settings)
        if vocabulary_size is not None and model_type not in ("whole_words", "auto"):
            proto = training.exactly(vocabulary_size, model_type)
        else:
            proto = training.fitting(vocabulary_size, model_type)
        write(proto)
    if lost:
        warnings.warn(
            f"The text has {' and '.join(sorted(lost))}, which this tokenizer does not keep: "
            'decoded text lacks them. `normalization="identity", keep_whitespace=True` keeps all.',
            UserWarning,
            stacklevel=2,
        )
    return proto


def _watched(sentences, patterns, lost):
    """The sentences; the names of the `patterns` that are found in some go into `lost`."""
    for sentence in sentences:
        for name, pattern in patterns.items():
            if name not in lost and pattern.search(sentence):
                lost.add(name)
        yield sentence


@contextlib.contextmanager
def _replacing(path):
    """Yields `write(bytes)`, which replaces the file at `path` in one step.

    The file beside the target is opened before the training, so that minutes of work are not
    lost to a wrong folder name.
    """
    if path is None:
        yield lambda data: None
        return
    with contextlib.ExitStack() as stack:
        try:
            if os.path.isdir(path):
                raise IsADirectoryError(f"{os.fspath(path)!r} is a directory")
            file = stack.enter_context(replaced(path, "wb"))
        except OSError as error:
            raise OSError(
                f"`path` cannot be written: {error}. Choose a file in an existing folder that "
                "you may write to."
            ) from error
        yield file.write
