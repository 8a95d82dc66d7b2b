"""Small worlds and tiny parts: what tests and short experiments of one's own can start from.

The text is made here, from rules, so nothing is downloaded, any amount of it can be made, and
whether a model's output is right is decided by a program: `TemplateGrammar` for sentences,
`number_pairs` for conditional generation. `dummy_generator` and its parts are tiny real models.
"""

from keras_elf.testing.dummies import (
    dummy_backbone,
    dummy_encoder,
    dummy_generator,
    dummy_preprocessor,
    dummy_texts,
    dummy_tokenizer,
    enliven,
)
from keras_elf.testing.grammar import TemplateGrammar
from keras_elf.testing.numbers import (
    exact_match,
    number_pairs,
    number_to_digits,
    number_to_words,
    split_number_pairs,
    words_to_number,
)

__all__ = [
    "TemplateGrammar",
    "dummy_backbone",
    "dummy_encoder",
    "dummy_generator",
    "dummy_preprocessor",
    "dummy_texts",
    "dummy_tokenizer",
    "enliven",
    "exact_match",
    "number_pairs",
    "number_to_digits",
    "number_to_words",
    "split_number_pairs",
    "words_to_number",
]
