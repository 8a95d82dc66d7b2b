"""A judge without a network: words are its tokens, and repeating oneself is cheap."""

import numpy as np

from keras_elf.evaluation.judges import Judge


class PaperJudge(Judge):
    """`nats` a token, next to none for a token that stood in the text before."""

    def __init__(self, nats=3.0, vocabulary_size=50257):
        self.nats, self.vocabulary_size = nats, vocabulary_size
        self.name = "gpt2_large_of_paper"
        self._known = {}

    def token_ids(self, texts):
        return [[self._known.setdefault(w, len(self._known)) for w in t.split()] for t in texts]

    def negative_log_likelihood(self, rows):
        repeated = np.array([len(row) - len(set(row)) for row in rows])
        counts = np.array([len(row) for row in rows])
        return self.nats * (counts - repeated) + 0.1 * repeated, counts

    def describe(self):
        return {"name": self.name, "dtype": "paper", "vocabulary_size": self.vocabulary_size}
