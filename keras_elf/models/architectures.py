"""The published sizes of ELF."""

from keras_elf import checks

# Table of the paper's model sizes; what is not named is shared by all three.
ARCHITECTURES = {
    "elf_b": {"depth": 12, "hidden_size": 768, "num_heads": 12},
    "elf_m": {"depth": 24, "hidden_size": 1056, "num_heads": 16},
    "elf_l": {"depth": 32, "hidden_size": 1280, "num_heads": 16},
}


def architecture(name):
    """Constructor arguments of `ELFBackbone` for a published size.

    Args:
        name: `"elf_b"`, `"elf_m"` or `"elf_l"` (105M, 343M, 652M parameters).

    Returns:
        dict of arguments, latent width 512 and T5's vocabulary of 32,100 included.

    Raises:
        ValueError: for another name.
    """
    checks.choice("architecture", name, ARCHITECTURES)
    return {"vocabulary_size": 32100, "latent_dim": 512, **ARCHITECTURES[name]}
