"""English sentences from a grammar, and the parser that says whether a text is one of them."""

import random

from keras_elf import checks

# A rule's alternatives, drawn with equal probability; one named twice is twice as likely. Words
# are the symbols that have no rule. "a" and "an" look at the next word, which may be an
# adjective, so nouns and adjectives are split by their first sound. No rule begins with itself:
# the parser goes down from the left.
RULES = {
    "S": ["CLAUSE", "CLAUSE", "CLAUSE CONJUNCTION CLAUSE"],
    "CLAUSE": ["NP_SG VP_SG", "NP_PL VP_PL"],
    "VP_SG": ["VERB_SG", "FREQUENCY VERB_SG"],
    "VP_PL": ["VERB_PL", "FREQUENCY VERB_PL"],
    "VERB_SG": ["VT_SG OBJECT", "VT_SG OBJECT", "VT_SG OBJECT PP", "VI_SG MANNER", "VI_SG PP"],
    "VERB_PL": ["VT_PL OBJECT", "VT_PL OBJECT", "VT_PL OBJECT PP", "VI_PL MANNER", "VI_PL PP"],
    "OBJECT": ["NP_SG", "NP_PL"],
    "PP": ["PREPOSITION OBJECT"],
    "NP_SG": ["ARTICLE", "DET_ANY NOMINAL_SG", "DET_SG NOMINAL_SG"],
    "ARTICLE": ["a CONSONANT", "an VOWEL"],
    "CONSONANT": ["N_CONSONANT", "ADJ_CONSONANT N_SG"],
    "VOWEL": ["N_VOWEL", "ADJ_VOWEL N_SG"],
    "NOMINAL_SG": ["N_SG", "ADJ N_SG"],
    "NP_PL": ["DET_ANY NOMINAL_PL", "DET_PL NOMINAL_PL"],
    "NOMINAL_PL": ["N_PL", "ADJ N_PL"],
    "N_SG": ["N_CONSONANT", "N_VOWEL"],
    "ADJ": ["ADJ_CONSONANT", "ADJ_VOWEL"],
    "DET_ANY": ["the", "my", "your"],
    "DET_SG": ["this", "every"],
    "DET_PL": ["these", "many"],
    "ADJ_CONSONANT": ["red", "small", "happy"],
    "ADJ_VOWEL": ["old", "angry", "eager"],
    "N_CONSONANT": ["fox", "horse", "dog", "doctor"],
    "N_VOWEL": ["owl", "artist"],
    "N_PL": ["foxes", "horses", "dogs", "doctors", "owls", "artists"],
    "VT_SG": ["paints", "helps", "follows", "sees"],
    "VT_PL": ["paint", "help", "follow", "see"],
    "VI_SG": ["sleeps", "sings", "waits"],
    "VI_PL": ["sleep", "sing", "wait"],
    "FREQUENCY": ["often", "never"],
    "MANNER": ["slowly", "quietly"],
    "PREPOSITION": ["near", "behind"],
    "CONJUNCTION": ["and", "but"],
}


class TemplateGrammar:
    """A context-free grammar that makes sentences and recognises them.

    The default has 49 English words and asks for order and agreement: *a* or *an* by the next
    word, the verb's number by its subject's, the determiner's by its noun's. *my red fox paints
    your horse* is a sentence of it; *my red foxes paints your horse* is not. A model writes
    such sentences only when it has learned how far words reach.

    Example:

    ```python
    grammar = keras_elf.testing.TemplateGrammar()
    train, held_out = grammar.split(3000, 200, seed=0)
    elf.fit(train, epochs=8)
    grammar.grammatical_share(elf.generate(num_samples=100, seed=0))
    ```

    Args:
        rules: dict from a symbol to its alternatives, each a str of symbols and words
            separated by blanks. No alternative may begin with its own symbol, directly or
            through others. Defaults to `None`: `keras_elf.testing.grammar.RULES`.
        start: str. The symbol of a whole sentence. Defaults to `"S"`.
        minimum_words: int. Words of the shortest sentence. Defaults to `5`.
        maximum_words: int. Words of the longest sentence. Defaults to `12`.

    Raises:
        ValueError: for a start without a rule, a rule without alternatives, a rule that begins
            with itself, or lengths out of order.
    """

    def __init__(self, rules=None, start="S", minimum_words=5, maximum_words=12):
        rules = RULES if rules is None else rules
        checks.integer("minimum_words", minimum_words, minimum=1)
        checks.integer("maximum_words", maximum_words, minimum=minimum_words)
        if start not in rules:
            raise ValueError(f"`start` must be a symbol of `rules`. Received: {start!r}")
        self.rules = {symbol: [one.split() for one in ways] for symbol, ways in rules.items()}
        for symbol, ways in self.rules.items():
            if not ways or not all(ways):
                raise ValueError(f"The rule of {symbol!r} has an empty alternative or none.")
        self.start = start
        self.minimum_words = minimum_words
        self.maximum_words = maximum_words
        for symbol in self.rules:
            self._check_recursion(symbol, ())

    @property
    def words(self):
        """Sorted list of str: all words of the grammar."""
        symbols = {s for ways in self.rules.values() for way in ways for s in way}
        return sorted(symbols - set(self.rules))

    def sentences(self, num, seed=0):
        """Sentences drawn at random, with repetitions as they fall.

        Args:
            num: int. How many.
            seed: int. The same seed gives the same sentences. Defaults to `0`.

        Returns:
            List of str, of words separated by one blank.
        """
        checks.integer("num", num, minimum=0)
        rng = random.Random(seed)
        return [self._sentence(rng) for _ in range(num)]

    def distinct_sentences(self, num, seed=0):
        """As `sentences`, each one only once.

        Raises:
            ValueError: where the grammar seems to have fewer.
        """
        checks.integer("num", num, minimum=0)
        rng, found = random.Random(seed), {}
        for _ in range(100 * num + 1000):
            if len(found) == num:
                return list(found)
            found[self._sentence(rng)] = None
        raise ValueError(
            f"The grammar seems to have fewer than {num} different sentences: {len(found)} were "
            "found. Ask for fewer, or add words."
        )

    def split(self, num_train, num_held_out, seed=0):
        """Two lists of distinct sentences that have none in common.

        Args:
            num_train: int. Sentences of the first list.
            num_held_out: int. Sentences of the second list.
            seed: int. Defaults to `0`.

        Returns:
            `(train, held_out)`, lists of str.
        """
        checks.integer("num_train", num_train, minimum=0)
        checks.integer("num_held_out", num_held_out, minimum=0)
        drawn = self.distinct_sentences(num_train + num_held_out, seed)
        return drawn[:num_train], drawn[num_train:]

    def is_grammatical(self, text):
        """Whether `text` is a sentence of the grammar, with the number of words it may have."""
        words = text.split()
        if not self.minimum_words <= len(words) <= self.maximum_words:
            return False
        return len(words) in self._ends(self.start, words, 0, {})

    def grammatical_share(self, texts):
        """The share of `texts` that are grammatical, a float in `[0, 1]`.

        Raises:
            ValueError: without texts, or for one str.
        """
        if isinstance(texts, str) or not len(texts):
            raise ValueError(f"`texts` must be a list with at least one str. Received: {texts!r}")
        return sum(map(self.is_grammatical, texts)) / len(texts)

    def _sentence(self, rng):
        for _ in range(1000):
            words = self._expand(self.start, rng)
            if self.minimum_words <= len(words) <= self.maximum_words:
                return " ".join(words)
        raise ValueError(
            f"No sentence of {self.minimum_words} to {self.maximum_words} words was found in "
            "1,000 draws: allow other lengths."
        )

    def _expand(self, symbol, rng):
        if symbol not in self.rules:
            return [symbol]
        way = rng.choice(self.rules[symbol])
        return [word for part in way for word in self._expand(part, rng)]

    def _ends(self, symbol, words, begin, known):
        """Set of the positions where a `symbol` that begins at `begin` can end."""
        if symbol not in self.rules:
            return {begin + 1} if begin < len(words) and words[begin] == symbol else set()
        if (symbol, begin) not in known:
            found = set()
            for way in self.rules[symbol]:
                positions = {begin}
                for part in way:
                    positions = {e for b in positions for e in self._ends(part, words, b, known)}
                found |= positions
            known[symbol, begin] = found
        return known[symbol, begin]

    def _check_recursion(self, symbol, above):
        if symbol in above:
            raise ValueError(f"The rule of {symbol!r} begins with itself; parsing would not end.")
        for way in self.rules.get(symbol, ()):
            self._check_recursion(way[0], (*above, symbol))
