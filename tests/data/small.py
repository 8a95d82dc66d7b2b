"""A small corpus and tokenizer that several tests share."""

import functools

from keras_elf.data import king_james_verses, train_sentencepiece

VOCABULARY_SIZE = 200


@functools.cache
def verses():
    return king_james_verses()[:300]


@functools.cache
def proto():
    return train_sentencepiece(verses(), VOCABULARY_SIZE)


@functools.cache
def tokenizer():
    import keras_hub

    return keras_hub.models.T5Tokenizer(proto=proto())
