"""The training objective: draws -> corrupted batch -> forward passes -> losses."""

from keras_elf.objectives.elf_objective import COMPOSITIONS, ELFObjective

__all__ = ["COMPOSITIONS", "ELFObjective"]
