"""When figures must not be believed: signs of collapsed text.

The thresholds come from what is known of ELF on web text: published samples of 1024 tokens have
5.0 to 5.3 nats of unigram entropy, a collapsed training run showed a perplexity of 2.7 with an
entropy of 0.7, and text above a perplexity of 300 was unreadable. They find broken text; text
that passes them may still be bad.
"""

import math

import numpy as np

# Entropy below which text of REFERENCE_LENGTH tokens counts as collapsed.
REFERENCE_ENTROPY, REFERENCE_LENGTH = 5.0, 1024
# Shorter texts have too few tokens for an entropy to tell anything.
MIN_TOKENS = 8
MAX_LOW_SHARE = 0.1
# Natural prose, even formulaic, repeats 1% to 9% of its 4-grams.
MAX_REPEATED = 0.2
MIN_DIFFERENT = 0.9
MAX_UNSCORED = 0.05
MAX_PERPLEXITY, PERPLEXITY_MIN_LENGTH = 300.0, 128
# Entropy and perplexity thresholds are of judges with pieces about as long as words; bytes or
# letters have low entropies in any text.
MIN_VOCABULARY = 10_000


def entropy_floor(num_tokens):
    """Unigram entropy below which a text of `num_tokens` tokens counts as collapsed, in nats.

    5 nats at 1024 tokens. For shorter texts the same share (72%) of the most that is possible,
    `log(num_tokens)`, which is lenient: in healthy text the share grows towards 100% as texts
    get shorter. For longer texts 5 nats, as the entropy of healthy text hardly grows.

    Args:
        num_tokens: int or int array.

    Returns:
        float or float64 array.
    """
    share = REFERENCE_ENTROPY / math.log(REFERENCE_LENGTH)
    lengths = np.clip(num_tokens, 1, REFERENCE_LENGTH)
    floor = share * np.log(lengths)
    return float(floor) if np.ndim(floor) == 0 else floor


def low_entropy(entropies, lengths):
    """`(mean, mean floor, share of texts below their floor)` of texts long enough to tell.

    `None` if no text is.
    """
    lengths, values = np.asarray(lengths), np.asarray(entropies)
    enough = lengths >= MIN_TOKENS
    if not enough.any():
        return None
    values, floors = values[enough], entropy_floor(lengths[enough])
    return float(values.mean()), float(floors.mean()), float((values < floors).mean())


def collapse_flags(figures, low, unit, perplexity_tells=False, conditional=False):
    """What is suspicious about figures, one sentence each.

    Args:
        figures: dict as in `GenerationReport.figures`.
        low: what `low_entropy` returned.
        unit: str. What the entropy was counted in.
        perplexity_tells: bool. Whether a perplexity threshold applies to the judge.
        conditional: bool. Whether equal texts may come from equal conditions.

    Returns:
        tuple of str, empty for text that passes.
    """
    flags = []
    perplexity = figures.get("generative_perplexity")
    if low is not None and (low[0] < low[1] or low[2] > MAX_LOW_SHARE):
        beside = "" if perplexity is None else f" Perplexity {perplexity:.1f} means nothing here."
        flags.append(
            f"Collapsed: unigram entropy {low[0]:.2f} nats ({unit}), where texts of this length "
            f"should have {low[1]:.2f} or more; {low[2]:.0%} of the texts have less.{beside}"
        )
    if figures["repeated_4grams"] > MAX_REPEATED:
        flags.append(
            f"Repetitive: {figures['repeated_4grams']:.0%} of a text's 4-grams stood in it "
            f"before; natural text stays below {MAX_REPEATED:.0%}."
        )
    if not conditional and figures["different_texts"] < MIN_DIFFERENT:
        flags.append(f"Alike: only {figures['different_texts']:.0%} of the texts differ.")
    if figures["unscored_texts"] > MAX_UNSCORED:
        flags.append(
            f"Empty: {figures['unscored_texts']:.0%} of the texts have fewer than two tokens, "
            "and no part in the perplexity."
        )
    if perplexity_tells and perplexity is not None and perplexity > MAX_PERPLEXITY:
        flags.append(f"Incoherent: perplexity {perplexity:.0f} is above {MAX_PERPLEXITY:.0f}.")
    return tuple(flags)
