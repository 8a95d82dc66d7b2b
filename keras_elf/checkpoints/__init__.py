"""Reading the weights that the authors of ELF released."""

from keras_elf.checkpoints.names import to_variables, variable_path

__all__ = ["to_variables", "variable_path"]
