"""Calls of SentencePiece's trainer: a given size, a size that suits, whole words; its errors."""

import io
import math
import re

from keras_elf.data.whole_words import WordCounts

# SentencePiece drops longer lines without a word; its own limit (4192 bytes) loses whole documents.
_LONGEST_LINE = 2**30
# "auto": what "few different words" means. Words that come once teach nothing.
_FEW_WORDS, _MOST_WORDS_COVERED, _FEWEST_TIMES = 4096, 0.98, 2


class Training:
    """Models of one text, which is read once and, where that is needed, kept in memory.

    Args:
        texts: `Texts`, which know of what went wrong while they were read.
        sentences: iterable of str, from `texts`.
        character_coverage: float or `None`, as in `train_sentencepiece`.
        settings: dict of further arguments of SentencePiece's trainer.
    """

    def __init__(self, texts, sentences, character_coverage, settings):
        self.texts, self.sentences = texts, sentences
        self.character_coverage, self.settings = character_coverage, settings

    def exactly(self, size, model_type):
        """SentencePiece's own kinds of models, of exactly `size` pieces."""
        proto = self._train(size, model_type, self.character_coverage or 0.9995)
        found = _size(proto)
        if found < size:
            raise _too_few_pieces(size, found)
        return proto

    def fitting(self, size, model_type):
        """Whole words, or a model with as many pieces as suit the text."""
        self.sentences = list(self.sentences)
        suited = size or _suited_size(self.sentences)
        if model_type in ("whole_words", "auto"):
            counts = self._word_counts()
            if model_type == "whole_words":
                return self._whole_words(counts, size, suited)
            words = counts.chosen(min(suited, _FEW_WORDS), at_least=_FEWEST_TIMES)
            if counts.smallest_size <= suited and counts.coverage(words) >= _MOST_WORDS_COVERED:
                return counts.model(words)
            model_type = "unigram"
        while True:
            try:
                return self.exactly(suited, model_type)
            except ValueError as error:
                largest = getattr(error, "largest_size", None)
                smallest = getattr(error, "smallest_size", None)
                # A size that was asked for may not be exceeded.
                if largest is None and (smallest is None or size is not None):
                    raise
                suited = largest or smallest

    def _whole_words(self, counts, size, suited):
        if size is not None and size < counts.smallest_size:
            raise _too_many_characters(size, counts.smallest_size)
        words = counts.chosen(suited)
        if size is not None and counts.size(words) < size:
            raise _too_few_pieces(size, counts.size(words))
        return counts.model(words)

    def _word_counts(self):
        # More than there are characters: what is too much is cut off without an error.
        letters = self._train(2**21, "char", self.character_coverage or 1.0, hard_vocab_limit=False)
        return WordCounts(letters, self.sentences)

    def _train(self, size, model_type, character_coverage, **kwargs):
        import sentencepiece

        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(self.sentences),
                model_writer=model,
                vocab_size=size,
                model_type=model_type,
                character_coverage=character_coverage,
                max_sentence_length=_LONGEST_LINE,
                # Sums in another order give other bytes.
                num_threads=1,
                minloglevel=2,
                **{"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1},
                **{"pad_piece": "<pad>", "eos_piece": "</s>", "unk_piece": "<unk>"},
                **self.settings,
                **kwargs,
            )
        except RuntimeError as error:
            # An error raised by `source` comes out of the C++ code as text only.
            raise (self.texts.error or _explained(error, self.texts, size)) from None
        return model.getvalue()


def _size(proto):
    import sentencepiece

    return sentencepiece.SentencePieceProcessor(model_proto=proto).vocab_size()


def _suited_size(sentences):
    characters = sum(len(sentence) for sentence in sentences)
    return min(max(round(4 * math.sqrt(characters)), 256), 32_000)


def _explained(error, texts, vocabulary_size):
    """SentencePiece's message as an error for people."""
    message = str(error)
    if not texts.count:
        return ValueError(f"`source` holds no text: {_short(texts.source)}")
    if found := re.search(r"too high.*<= (\d+)", message):
        return _too_few_pieces(vocabulary_size, int(found[1]))
    if found := re.search(r"smaller than required_chars. \d+ vs (\d+)", message):
        return _too_many_characters(vocabulary_size, int(found[1]))
    return ValueError(f"SentencePiece could not train on `source`: {message}")


def _too_few_pieces(vocabulary_size, largest):
    error = ValueError(
        "The corpus has fewer pieces than `vocabulary_size` asks for. Received: "
        f"{vocabulary_size}. The largest possible size for this corpus is {largest}; use that "
        "or a smaller one, or more text."
    )
    error.largest_size = largest
    return error


def _too_many_characters(vocabulary_size, smallest):
    error = ValueError(
        "`vocabulary_size` is too small for the different characters of the corpus. "
        f"Received: {vocabulary_size}. The smallest possible size is {smallest}; a lower "
        "`character_coverage` allows smaller ones."
    )
    error.smallest_size = smallest
    return error


def _short(source):
    text = repr(source)
    return text if len(text) <= 80 else text[:77] + "..."
