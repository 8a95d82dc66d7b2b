"""Which tokens of a text are scored, and from which window of the judge's context."""

import numpy as np


def counted(ids, end_id):
    """Which tokens of one text count: all that are no end token, and the first end token.

    The first token is never scored, as nothing stands before it.

    Args:
        ids: int array `(tokens,)`.
        end_id: int.

    Returns:
        bool array `(tokens,)`.
    """
    ids = np.asarray(ids)
    is_end = ids == end_id
    counts = ~is_end | (is_end & (np.cumsum(is_end) == 1))
    counts[0] = False
    return counts


def windows(num_tokens, context):
    """The windows `(start, first, stop)` that cover a text.

    Tokens `first` to `stop - 1` are predicted from what stands before them back to `start`.
    Each token is predicted once. A window overlaps the one before it by half the context, so
    that where a text is too long, every token still has at least half a context before it.

    Args:
        num_tokens: int. Tokens of the text, at least 2.
        context: int. Tokens that the judge can look at, at least 2.
    """
    stop = min(num_tokens, context + 1)
    found = [(0, 1, stop)]
    while stop < num_tokens:
        first, stop = stop, min(stop + context // 2, num_tokens)
        found.append((stop - context - 1, first, stop))
    return found


def bucket(length, longest):
    """The length that `length` is padded to: a power of two, few different ones to compile."""
    return min(max(16, 1 << (length - 1).bit_length()), longest)
