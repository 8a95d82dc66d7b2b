"""Loading what lies in a preset directory, with errors that say what is wrong with it."""

import contextlib

from keras_elf.initialization import weights_to_come
from keras_elf.presets import preset_directory


def loaded(path, load, load_weights, kwargs):
    if "://" not in path and kwargs.get("dtype") is None:
        # keras_hub stumbles over mixed policies and forgets reduced ones.
        saved = preset_directory.saved_policy(path)
        if saved not in (None, "float32"):
            kwargs = {**kwargs, "dtype": saved}
    to_come = weights_to_come() if load_weights else contextlib.nullcontext()
    try:
        with to_come:
            return load(path, load_weights=load_weights, **kwargs)
    except (TypeError, ValueError, ImportError, MemoryError):
        raise
    except Exception as error:  # h5py, SentencePiece and TensorFlow have errors of their own
        if "://" in path:
            raise
        raise ValueError(f"The preset {path!r} is damaged: {error}") from error
