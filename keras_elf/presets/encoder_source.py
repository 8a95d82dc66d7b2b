"""Where the weights of an encoder lie that is loaded when it is needed."""

import os

import h5py
import keras

from keras_elf.encoders import LatentEncoder, TextEncoder
from keras_elf.encoders.deferred_encoder import DeferredEncoder
from keras_elf.initialization import weights_to_come
from keras_elf.presets import bundled, preset_directory, published, safety
from keras_elf.presets.weight_budget import weight_budget

# Where Keras puts the encoder of a generator into a weights file.
_GROUP = "layers/latent_encoder/encoder"


class InPreset:
    """The encoder's weights in a preset's own task.weights.h5.

    Args:
        path: str. The directory.
    """

    def __init__(self, path):
        self.directory = path
        self.file = os.path.join(path, preset_directory.TASK_WEIGHTS)
        self.bytes = os.path.getsize(self.file)
        self._identity = self._look()

    def make(self, serialized):
        """The encoder with its weights.

        Raises:
            ValueError: if the file has gone, was replaced since, or is damaged.
        """
        self._check_same()
        limit, held = safety.most_weights(self.directory, [preset_directory.TASK_WEIGHTS])
        with weights_to_come(), weight_budget(self.directory, limit, held):
            encoder = keras.saving.deserialize_keras_object(serialized)
        # The same place in a model's tree as the one it was saved from.
        holder = keras.Sequential([LatentEncoder(encoder, name="latent_encoder")])
        holder.built = True
        try:
            keras.saving.load_weights(holder, self.file)
        except (OSError, KeyError, RuntimeError) as error:
            raise ValueError(f"The preset {self.directory!r} is damaged: {error}") from error
        return encoder

    def write(self, directory):
        """Add the encoder's weights to the task.weights.h5 that lies in `directory`."""
        self._check_same()
        target = os.path.join(directory, preset_directory.TASK_WEIGHTS)
        with h5py.File(self.file, "r") as ours, h5py.File(target, "r+") as theirs:
            ours.copy(ours[_GROUP], theirs.require_group(os.path.dirname(_GROUP)), "encoder")

    def _look(self):
        found = os.stat(self.file)
        return found.st_size, found.st_mtime_ns, found.st_ino

    def _check_same(self):
        try:
            same = self._look() == self._identity
        except OSError:
            same = False
        if not same:
            raise ValueError(
                "The encoder of this model was to be loaded when needed, and its file "
                f"{self.file!r} is gone or was replaced since the model was loaded. Load the "
                "preset again; `model.encoder` loads the encoder at once"
            )


class Published:
    """The encoder of a published model, downloaded from where its authors took it.

    Args:
        name: str. A bundled preset.
    """

    bytes = 0

    def __init__(self, name):
        self.name = name

    def make(self, serialized):
        """The encoder with its weights; raises `keras_elf.hub.HubError` if a download fails."""
        with weights_to_come():
            encoder = keras.saving.deserialize_keras_object(serialized)
        published.loader().fill_encoder(self.name, encoder)
        return encoder

    def write(self, directory):
        """Note in `directory` whose encoder it is."""
        preset_directory.write_json(directory, preset_directory.ENCODER, {"published": self.name})


def deferred(path, serialized):
    """What stands for the encoder of a preset until it is needed; `None` to load it at once.

    Args:
        path: str. The directory.
        serialized: dict. `encoder` in task.json.

    Returns:
        `DeferredEncoder`, or `None` for an encoder that trains, one that is
        the network's own table, or something that is not an encoder.
    """
    cls = keras.saving.get_registered_object(serialized.get("registered_name") or "")
    config = serialized.get("config")
    if not (isinstance(cls, type) and issubclass(cls, TextEncoder) and isinstance(config, dict)):
        return None
    sizes = [config.get(name) for name in ("latent_dim", "vocabulary_size")]
    if config.get("trainable", True) is not False or not all(type(s) is int for s in sizes):
        return None
    if os.path.isfile(os.path.join(path, preset_directory.ENCODER)):
        source = Published(_published_name(path, config))
    elif _has_encoder(path):
        source = InPreset(path)
    else:
        return None
    return DeferredEncoder(serialized, lambda: source.make(serialized), source)


def of_published(name):
    """The `DeferredEncoder` of a published model."""
    serialized = safety.read_json(str(bundled.directory(name)), preset_directory.TASK)
    serialized = serialized["config"]["encoder"]
    source = Published(name)
    return DeferredEncoder(serialized, lambda: source.make(serialized), source)


def _has_encoder(path):
    try:
        with h5py.File(os.path.join(path, preset_directory.TASK_WEIGHTS), "r") as file:
            return _GROUP in file
    except OSError:
        return False


def _published_name(path, config):
    name = preset_directory.read_plain_json(path, preset_directory.ENCODER).get("published")
    if name not in bundled.directories():
        raise ValueError(
            f"{preset_directory.ENCODER} in preset {path!r} names {name!r}, not a published "
            f"model. Those are {sorted(bundled.directories())}"
        )
    task = safety.read_json(str(bundled.directory(name)), preset_directory.TASK)
    known = (task["config"].get("encoder") or {}).get("config", {})
    changes_nothing = ("name", "dtype")
    if {k: v for k, v in config.items() if k not in changes_nothing} != {
        k: v for k, v in known.items() if k not in changes_nothing
    }:
        raise ValueError(
            f"The preset {path!r} is refused: it takes the encoder of {name!r} and gives it other "
            "sizes"
        )
    return name
