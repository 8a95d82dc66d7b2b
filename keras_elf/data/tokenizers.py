"""Training of a SentencePiece tokenizer on text of one's own."""

import contextlib
import io
import os
import re

from keras_elf import checks
from keras_elf.data.texts import Texts, draw

MODEL_TYPES = ("unigram", "bpe", "char", "word")
# SentencePiece drops longer lines without a word; its own limit (4192 bytes) loses whole documents.
_LONGEST_LINE = 2**30


def train_sentencepiece(
    source,
    vocabulary_size,
    path=None,
    *,
    model_type="unigram",
    max_sentences=None,
    seed=0,
    character_coverage=0.9995,
    byte_fallback=False,
):
    """Train a SentencePiece model with T5's special tokens.

    Ids 0, 1 and 2 are `<pad>`, `</s>` (end) and `<unk>`, and there is no token for a beginning, as
    in T5. The same text and arguments give the same bytes. The result works in
    `keras_hub.models.T5Tokenizer(proto=...)`, with and without TensorFlow.

    Args:
        source: str or path of a UTF-8 text file, one text a line; or an iterable of str. Blank
            lines are skipped.
        vocabulary_size: int. Number of pieces, with the three special ones.
        path: str or path. Where to write the model; an existing file is replaced only when the
            new one is complete. Defaults to `None`: nowhere.
        model_type: `"unigram"`, `"bpe"`, `"char"` or `"word"`. Defaults to `"unigram"`, T5's.
        max_sentences: int. Train on at most so many texts, drawn uniformly from all. Bounds the
            memory on large corpora. Defaults to `None`: all.
        seed: int. Seed of that draw. Defaults to `0`.
        character_coverage: float in (0, 1]. Share of the corpus's characters that get a piece;
            the rarest become `<unk>`. Defaults to `0.9995`.
        byte_fallback: bool. Whether unknown characters become pieces for their UTF-8 bytes
            instead of `<unk>`; takes 256 pieces. Defaults to `False`.

    Returns:
        bytes, the serialised model.

    Raises:
        ValueError: if the corpus holds no text, is not UTF-8 (with the line), or has too few or
            too many different pieces for `vocabulary_size` (with the nearest size that works).
        OSError: if the file cannot be read, or the target cannot be written. Nothing is left
            half written.

    Example:

    ```python
    proto = keras_elf.data.train_sentencepiece("corpus.txt", 8000, "corpus.spm")
    tokenizer = keras_hub.models.T5Tokenizer(proto=proto)
    ```
    """
    import sentencepiece

    # SentencePiece counts in 32 bits.
    checks.integer("vocabulary_size", vocabulary_size, minimum=4, maximum=2**31 - 1)
    checks.choice("model_type", model_type, MODEL_TYPES)
    checks.integer("seed", seed, minimum=0)
    checks.number("character_coverage", character_coverage, minimum=0, maximum=1)
    texts = Texts(source)
    sentences = iter(texts)
    if max_sentences is not None:
        checks.integer("max_sentences", max_sentences, minimum=1)
        sentences = iter(draw(sentences, max_sentences, seed))
    with _replacing(path) as write:
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=sentences,
                model_writer=model,
                vocab_size=vocabulary_size,
                model_type=model_type,
                character_coverage=character_coverage,
                byte_fallback=byte_fallback,
                max_sentence_length=_LONGEST_LINE,
                # Sums in another order give other bytes.
                num_threads=1,
                minloglevel=2,
                **{"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1},
                **{"pad_piece": "<pad>", "eos_piece": "</s>", "unk_piece": "<unk>"},
            )
        except RuntimeError as error:
            # An error raised by `source` comes out of the C++ code as text only.
            raise (texts.error or _explained(error, texts, vocabulary_size)) from None
        proto = model.getvalue()
        size = sentencepiece.SentencePieceProcessor(model_proto=proto).vocab_size()
        if size < vocabulary_size:
            raise _too_few_pieces(vocabulary_size, size)
        write(proto)
    return proto


def _explained(error, texts, vocabulary_size):
    """SentencePiece's message as an error for people."""
    message = str(error)
    if not texts.count:
        return ValueError(f"`source` holds no text: {_short(texts.source)}")
    if found := re.search(r"too high.*<= (\d+)", message):
        return _too_few_pieces(vocabulary_size, int(found[1]))
    if found := re.search(r"smaller than required_chars. \d+ vs (\d+)", message):
        return ValueError(
            f"`vocabulary_size` is too small for the different characters of the corpus. "
            f"Received: {vocabulary_size}. The smallest possible size is {found[1]}; a lower "
            "`character_coverage` allows smaller ones."
        )
    return ValueError(f"SentencePiece could not train on `source`: {message}")


def _too_few_pieces(vocabulary_size, largest):
    error = ValueError(
        "The corpus has fewer pieces than `vocabulary_size` asks for. Received: "
        f"{vocabulary_size}. The largest possible size for this corpus is {largest}; use that "
        "or a smaller one, or more text."
    )
    error.largest_size = largest
    return error


def _short(source):
    text = repr(source)
    return text if len(text) <= 80 else text[:77] + "..."


@contextlib.contextmanager
def _replacing(path):
    """Yields `write(bytes)`, which replaces the file at `path` in one step; checks it beforehand.

    The file beside the target is opened before the training, so that minutes of work are not
    lost to a wrong folder name.
    """
    if path is None:
        yield lambda data: None
        return
    path = os.path.abspath(path)
    beside = f"{path}.{os.getpid()}.tmp"
    try:
        if os.path.isdir(path):
            raise IsADirectoryError(f"{path!r} is a directory")
        file = open(beside, "wb")
    except OSError as error:
        raise OSError(
            f"`path` cannot be written: {error}. Choose a file in an existing folder that you "
            "may write to."
        ) from error
    try:
        with file:
            yield file.write
        os.replace(beside, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(beside)
