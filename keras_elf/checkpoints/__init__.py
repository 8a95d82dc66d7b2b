"""Reading the weights that the authors of ELF released."""

from keras_elf.checkpoints.names import to_variables
from keras_elf.checkpoints.names import variable_path

__all__ = ["to_variables", "variable_path"]
