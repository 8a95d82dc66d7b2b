"""What a text is like: how many pieces of text there are, how long, and what rows suit them."""

import dataclasses
import itertools

import numpy as np

from keras_elf.data.encode import to_token_ids

# Of each text so many are enough to know how long the others are.
LOOKED_AT = 20_000
# Texts with more tokens are documents, whose place is in packed rows.
LONGEST_LINE = 96
LONGEST_CONDITION, LONGEST_PAIR = 256, 512
PACKED_LENGTH = 64
COVERED = 99


@dataclasses.dataclass(frozen=True)
class TextSurvey:
    """Numbers and lengths of texts, made by `survey`.

    Attributes:
        num_texts: int. All texts.
        lengths: int array. Tokens of those looked at, each with its end token.
        condition_lengths: int array of their conditions, or `None`.
    """

    num_texts: int
    lengths: np.ndarray
    condition_lengths: np.ndarray | None = None

    @property
    def conditional(self):
        """bool. Whether the texts depend on conditions."""
        return self.condition_lengths is not None

    @property
    def num_tokens(self):
        """int. Tokens of all texts, estimated where not all were looked at."""
        return round(float(self.lengths.mean()) * self.num_texts)

    def one_row_each(self, sequence_length=None):
        """Whether each text should have a row of its own, and why, a phrase.

        Args:
            sequence_length: int. Tokens of a row, if that is settled already. Then short texts
                in long rows are packed: rows would be mostly padding.
        """
        covering = int(np.percentile(self.lengths, COVERED))
        longest = sequence_length or LONGEST_LINE
        if self.conditional:
            return True, "they are pairs"
        if covering > longest:
            return False, f"{COVERED} % have up to {covering} tokens, more than {longest}"
        mean = float(self.lengths.mean())
        if sequence_length is not None and mean < sequence_length / 4:
            return False, f"they have {mean:.0f} tokens on average, rows {sequence_length}"
        return True, f"{COVERED} % have at most {covering} tokens"

    def row_lengths(self, packed):
        """Tokens of a row and of a condition that suit the texts.

        Args:
            packed: bool. Whether rows hold several texts.

        Returns:
            `(sequence_length, condition_length)`, the second `None` without conditions.
        """
        if packed:
            return PACKED_LENGTH, None
        length = max(4, _covering(self.lengths))
        if not self.conditional:
            return length, None
        condition = min(LONGEST_CONDITION, max(1, _covering(self.condition_lengths)))
        return min(LONGEST_PAIR, condition + length), condition

    def num_rows(self, packed, sequence_length):
        """int. Rows that the texts make."""
        return max(1, self.num_tokens // sequence_length) if packed else self.num_texts


def survey(pairs, tokenizer):
    """Count texts and their tokens.

    Args:
        pairs: iterable of `(condition, target)`, str or token ids; the condition may be `None`.
        tokenizer: a `keras_hub.tokenizers.Tokenizer`.

    Returns:
        `TextSurvey`.

    Raises:
        ValueError: for no text at all.
    """
    pairs = iter([c, t] for c, t in pairs if _says(t) and (c is None or _says(c)))
    seen = list(itertools.islice(pairs, LOOKED_AT))
    if not seen:
        raise ValueError("`pairs` must hold at least one text. Received none")
    conditions, targets = zip(*seen, strict=True)
    lengths = _lengths(targets, tokenizer) + 1
    given = None if conditions[0] is None else _lengths(conditions, tokenizer)
    return TextSurvey(len(seen) + sum(1 for _ in pairs), lengths, given)


def _says(text):
    return bool(text.strip()) if isinstance(text, str) else len(text) > 0


def _lengths(texts, tokenizer):
    return np.array([len(row) for row in to_token_ids("texts", list(texts), tokenizer)])


def _covering(lengths):
    """A length for nearly all: the longest where that costs little, else of the 99th percentile."""
    usual, longest = int(np.ceil(np.percentile(lengths, COVERED))), int(lengths.max())
    return longest if longest <= 1.25 * usual else usual
