"""Presets: their names, where they lie, what makes one safe, how they are saved and loaded.

Nothing here knows a model by name: a preset's own configuration says which classes it needs.
"""

from keras_elf.presets.bundled import directories, directory, information
from keras_elf.presets.published import register_published
from keras_elf.presets.resolution import local_directory

__all__ = ["directories", "directory", "information", "local_directory", "register_published"]
