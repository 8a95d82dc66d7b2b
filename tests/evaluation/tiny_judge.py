"""A judge of one layer with random weights and a byte-pair vocabulary, made here."""

import keras
import keras_hub
import numpy as np

CONTEXT = 32


def vocabulary():
    """All bytes in GPT-2's printable spelling, and a few merges."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    pieces = ["<|endoftext|>"]
    pieces += [chr(b) if b in printable else chr(next(others)) for b in range(256)]
    merges = ["t h", "th e", "Ġ the", "a n", "an d", "Ġ and", "Ġ o", "Ġo f"]
    pieces += [merge.replace(" ", "") for merge in merges]
    return {piece: i for i, piece in enumerate(pieces)}, merges


def tokenizer():
    pieces, merges = vocabulary()
    return keras_hub.models.GPT2Tokenizer(vocabulary=pieces, merges=merges)


def judge(dtype="float32", lively=True):
    """A `GPT2CausalLM`, with lively weights: as built, all tokens are nearly alike."""
    keras.utils.set_random_seed(0)
    pieces = tokenizer()
    made = keras_hub.models.GPT2CausalLM(
        keras_hub.models.GPT2Backbone(
            vocabulary_size=pieces.vocabulary_size(),
            num_layers=1,
            num_heads=2,
            hidden_dim=8,
            intermediate_dim=16,
            dropout=0.5,
            max_sequence_length=CONTEXT,
            dtype=dtype,
        ),
        keras_hub.models.GPT2CausalLMPreprocessor(pieces, sequence_length=16),
    )
    rng = np.random.default_rng(0)
    for variable in made.trainable_variables if lively else ():
        variable.assign_add(rng.normal(size=variable.shape, scale=0.5).astype("float32"))
    return made
