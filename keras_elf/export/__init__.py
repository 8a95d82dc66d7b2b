"""Export: the denoiser as a file that runs without Keras."""

from keras_elf.export.exported_network import ExportedNetwork
from keras_elf.export.exporting import FORMATS, export_denoiser
from keras_elf.export.settings import sampling_settings

__all__ = ["FORMATS", "ExportedNetwork", "export_denoiser", "sampling_settings"]
