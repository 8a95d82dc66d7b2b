"""Small worlds and tiny parts: what tests and short experiments of one's own can start from.

The text is made here, from rules, so nothing is downloaded, any amount of it can be made, and
whether a model's output is right is decided by a program: `TemplateGrammar` for sentences,
`number_pairs` for conditional generation.
"""

from keras_elf.testing.grammar import TemplateGrammar

__all__ = ["TemplateGrammar"]
