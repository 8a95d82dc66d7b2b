"""Reading the weights that the authors of ELF released.

`import_checkpoint` turns a released file into a Keras preset; `open_checkpoint` only opens
it; `released_presets` downloads and converts the published models by name.
"""

import importlib

_HOMES = {
    "import_checkpoint": "importing",
    "open_checkpoint": "opening",
    "ArrayReference": "released",
    "ReleasedCheckpoint": "released",
    "to_variables": "names",
    "variable_path": "names",
}

__all__ = sorted(_HOMES)


def __getattr__(name):
    # Importing a checkpoint needs the models; naming a variable does not.
    if name in _HOMES:
        return getattr(importlib.import_module(f"keras_elf.checkpoints.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
