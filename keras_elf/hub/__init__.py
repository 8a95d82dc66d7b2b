"""Downloading from the Hugging Face hub, and a cache of what is built from it."""

from keras_elf.hub.cache import build_once, keras_home_directory
from keras_elf.hub.downloading import Download, download
from keras_elf.hub.errors import HubError
from keras_elf.hub.handles import PRESET_FILES, snapshot, split_handle
from keras_elf.hub.listing import newest_checkpoint

__all__ = [
    "PRESET_FILES",
    "Download",
    "HubError",
    "build_once",
    "download",
    "keras_home_directory",
    "newest_checkpoint",
    "snapshot",
    "split_handle",
]
