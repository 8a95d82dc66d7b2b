"""Small worlds and tiny parts: what tests and short experiments of one's own can start from.

The text is made here, from rules, so nothing is downloaded, any amount of it can be made, and
whether a model's output is right is decided by a program: `TemplateGrammar` for sentences,
`number_pairs` for conditional generation. `dummy_generator` and its parts are tiny real models.
`check_denoiser`, `check_sampler` and their likes say what is wrong with a part of one's own.
"""

import importlib

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
    "DummyDenoiser",
    "TemplateGrammar",
    "check_denoiser",
    "check_encoder",
    "check_guidance",
    "check_objective",
    "check_sampler",
    "check_signal",
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

# Keras is loaded with these, and not with the grammar: they are looked up when asked for.
_WITH_KERAS = {
    "DummyDenoiser": "dummy_denoiser",
    "check_denoiser": "conformance",
    "check_encoder": "conformance",
    "check_guidance": "conformance",
    "check_objective": "conformance",
    "check_sampler": "conformance",
    "check_signal": "conformance",
}


def __getattr__(name):
    if name in _WITH_KERAS:
        return getattr(importlib.import_module(f"keras_elf.testing.{_WITH_KERAS[name]}"), name)
    raise AttributeError(f"module 'keras_elf.testing' has no attribute {name!r}")
