"""A context signal of one's own: the number of words that a sentence is to have.

KERAS_BACKEND=torch python examples/own_parts/length_signal.py

Measured on PyTorch: of 104 sentences of 5 to 12 words all have the length that was asked for, and
84 % are grammatical; 91 % of 100 without a length.
"""

import functools

import grammar_model
import keras
from keras import ops

from keras_elf.layers import ContextSignal, ModeSignal, ScaleSignal, TimeSignal


@keras.saving.register_keras_serializable(package="own_parts")
class LengthSignal(ContextSignal):
    """Learned tokens for each number of words up to 15; 0 stands for any."""

    key, empty, value_dtype = "length", 0, "int32"

    def build(self, value_shape=None):
        self.table = self.add_weight((16, self.num_tokens * self.width), name="table")
        self.built = True

    def check(self, values):
        if ((values < 0) | (values > 15)).any():
            raise ValueError(f"`length` must be in [0, 15]. Received: {values}")

    def call(self, value):
        rows = ops.take(self.table, value, axis=0)
        return ops.reshape(rows, (-1, self.num_tokens, self.width))


def main(directory, quick=False):
    signals = [TimeSignal(), ScaleSignal(), ModeSignal(), LengthSignal(num_tokens=2)]
    network = functools.partial(grammar_model.default_network, context_signals=signals)
    # A tenth of the rows is not told the length, so that text of any length can be asked for.
    elf = grammar_model.new_model(directory, network, quick, label_drop_probability=0.1)
    texts = grammar_model.SENTENCES
    lengths = [len(text.split()) for text in texts]
    grammar_model.train(elf, {"target": texts, "length": lengths}, quick=quick)

    asked = [5, 6, 7, 8, 9, 10, 11, 12] * (1 if quick else 13)
    written = elf.generate(signals={"length": asked}, seed=1)
    right = sum(len(text.split()) == n for text, n in zip(written, asked, strict=True))
    share = grammar_model.GRAMMAR.grammatical_share(written)
    print(f"{share:.1%} grammatical, {right / len(asked):.1%} of the length asked for")
    print(f"without a length: {grammar_model.share(elf):.1%} grammatical")
    return elf


if __name__ == "__main__":
    grammar_model.run(main, __file__)
