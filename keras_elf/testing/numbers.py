"""Digits and the number in words: pairs for conditional generation with one right answer each."""

import random

from keras_elf import checks

LARGEST = 999_999
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_VALUES = {word: value for value, word in enumerate(_ONES)}
_VALUES |= {word: 10 * value for value, word in enumerate(_TENS, start=2)}


def number_to_words(number):
    """English words of a number, without *and* and hyphens: one word, one token.

    Args:
        number: int in `[0, 999_999]`.

    Returns:
        str, such as `"one thousand two hundred four"` for 1204.
    """
    checks.integer("number", number, minimum=0, maximum=LARGEST)
    if number == 0:
        return _ONES[0]
    thousands, rest = divmod(number, 1000)
    words = [*_below_thousand(thousands), "thousand"] if thousands else []
    return " ".join([*words, *_below_thousand(rest)])


def words_to_number(words):
    """The number that `words` name, the inverse of `number_to_words`.

    Args:
        words: str.

    Returns:
        int, or `None` where `words` are not exactly how a number is written.
    """
    total = part = 0
    for word in words.split():
        if word == "thousand":
            total, part = total + 1000 * part, 0
        elif word == "hundred":
            part *= 100
        elif word in _VALUES:
            part += _VALUES[word]
        else:
            return None
    number = total + part
    # Sums alone would take "two twenty" and "one one" for numbers.
    right = number <= LARGEST and number_to_words(number) == words
    return number if right else None


def number_to_digits(number):
    """Digits of a number with blanks between, which a tokenizer of words takes one by one."""
    return " ".join(str(checks.integer("number", number, minimum=0, maximum=LARGEST)))


def number_pairs(num, seed=0, maximum=9_999):
    """Distinct pairs of digits and words, such as `"1 2 0 4"`, `"one thousand two hundred four"`.

    The number of digits is drawn first, so that short numbers are not rare; once all numbers
    of a length are used, the others are drawn more often.

    Args:
        num: int. How many pairs.
        seed: int. The same seed gives the same pairs. Defaults to `0`.
        maximum: int. The largest number, at most 999,999. Defaults to `9_999`.

    Returns:
        dict of `"condition"` and `"target"`, lists of str: what `ELFGenerator.fit` takes.

    Raises:
        ValueError: if there are fewer than `num` numbers.
    """
    checks.integer("maximum", maximum, minimum=0, maximum=LARGEST)
    checks.integer("num", num, minimum=0)
    if num > maximum + 1:
        raise ValueError(f"There are {maximum + 1} numbers up to {maximum}. Received: num={num}")
    rng = random.Random(seed)
    left = [_shuffled(length, maximum, rng) for length in range(1, len(str(maximum)) + 1)]
    numbers = []
    while len(numbers) < num:
        numbers.append(rng.choice([some for some in left if some]).pop())
    # The short ones run out first: the order must not tell a number's length.
    rng.shuffle(numbers)
    return {
        "condition": [number_to_digits(number) for number in numbers],
        "target": [number_to_words(number) for number in numbers],
    }


def split_number_pairs(num_train, num_held_out, seed=0, maximum=9_999):
    """`number_pairs` for training and others for a test: no number is in both.

    Args:
        num_train: int. Pairs of the first dict.
        num_held_out: int. Pairs of the second dict.
        seed: int. Defaults to `0`.
        maximum: int. Defaults to `9_999`.

    Returns:
        `(train, held_out)`, dicts as of `number_pairs`.

    Raises:
        ValueError: if there are too few numbers.
    """
    checks.integer("num_train", num_train, minimum=0)
    checks.integer("num_held_out", num_held_out, minimum=0)
    pairs = number_pairs(num_train + num_held_out, seed, maximum)
    held_out = {key: texts[:num_held_out] for key, texts in pairs.items()}
    return {key: texts[num_held_out:] for key, texts in pairs.items()}, held_out


def exact_match(outputs, references):
    """The share of `outputs` that equal their reference, apart from the blanks around words.

    Args:
        outputs: list of str, what a model wrote.
        references: list of str, what is right, as many.

    Returns:
        float in `[0, 1]`.

    Raises:
        ValueError: for lists of other lengths, empty ones or single strs.
    """
    if isinstance(outputs, str) or isinstance(references, str):
        raise ValueError("`outputs` and `references` must be lists of str, not a single str.")
    if len(outputs) != len(references) or not len(outputs):
        raise ValueError(
            "`outputs` and `references` must have the same length, at least 1. Received: "
            f"{len(outputs)} and {len(references)}"
        )
    pairs = zip(outputs, references, strict=True)
    return sum(one.split() == other.split() for one, other in pairs) / len(outputs)


def _below_thousand(number):
    hundreds, rest = divmod(number, 100)
    words = [_ONES[hundreds], "hundred"] if hundreds else []
    if rest >= 20:
        words.append(_TENS[rest // 10 - 2])
        rest %= 10
    return [*words, _ONES[rest]] if rest else words


def _shuffled(length, maximum, rng):
    smallest = 0 if length == 1 else 10 ** (length - 1)
    numbers = list(range(smallest, min(10**length - 1, maximum) + 1))
    rng.shuffle(numbers)
    return numbers
