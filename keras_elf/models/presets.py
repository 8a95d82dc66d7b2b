"""Saving to and loading from preset directories, whole or not at all."""

import json
import os
import shutil
import tempfile

import keras

from keras_elf import checks
from keras_elf.models.averages import averaged_weights

_HANDLES = ("kaggle://", "hf://", "modelscope://", "gs://", "s3://", "hdfs://")
_CONFIG, _TASK = "config.json", "task.json"
_WEIGHTS = ("model.weights.h5", "model.weights.json")
_OPTIONAL = (*_WEIGHTS, "task.weights.h5", "preprocessor.json", "tokenizer.json")


class PresetMixin:
    """`save_to_preset` and `from_preset` of `ELFGenerator`, on top of keras_hub's."""

    def save_to_preset(self, preset_dir, max_shard_size=10, use_averages=True):
        """Save the model as a preset directory.

        Everything is written beside the target first and moved there when it is complete,
        so that a failure leaves what was there before.

        Args:
            preset_dir: str or path. Made if missing; files of an earlier preset in it are
                replaced.
            max_shard_size: int or float. Largest weights file in GB. Defaults to `10`.
            use_averages: bool. Whether to save the averaged weights where training kept
                some. Defaults to `True`.

        Raises:
            ValueError: if the target cannot be written.
        """
        if any(layer.quantization_mode for layer in self._flatten_layers()):
            raise ValueError(
                "A quantised model cannot be saved as a preset: its integer kernels could not be "
                "loaded again. Save the preset before `quantize` and quantise after loading"
            )
        if not os.fspath(preset_dir):
            raise ValueError("`preset_dir` must name a directory. Received: ''")
        target = os.path.abspath(os.fspath(preset_dir))
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            parent, name = os.path.split(target)
            beside = tempfile.mkdtemp(prefix=f".{name}-", dir=parent)
        except OSError as error:
            raise ValueError(f"`preset_dir` cannot be written: {target!r} ({error})") from error
        try:
            with averaged_weights(self, use_averages):
                super().save_to_preset(beside, max_shard_size=max_shard_size)
            _move_into_place(beside, target)
        except OSError as error:
            raise ValueError(f"`preset_dir` cannot be written: {target!r} ({error})") from error
        finally:
            shutil.rmtree(beside, ignore_errors=True)

    def save_task_weights(self, filepath):
        """Save the weights that are not in the backbone; no optimizer state."""
        keras.saving.save_weights(self, filepath, objects_to_skip=self._not_task_weights())

    def load_task_weights(self, filepath):
        """Load what `save_task_weights` saved."""
        keras.saving.load_weights(self, filepath, objects_to_skip=self._not_task_weights())

    def _not_task_weights(self):
        # keras_hub would write the optimizer, twice the size of the model, into each preset.
        skipped = list(self.backbone._flatten_layers())
        return skipped if self.optimizer is None else [*skipped, self.optimizer]

    @classmethod
    def from_preset(cls, preset, load_weights=True, **kwargs):
        """Load a model from a preset.

        Args:
            preset: str or path. A directory written by `save_to_preset`, or a handle that
                keras_hub knows (`"hf://user/name"`, `"kaggle://..."`).
            load_weights: bool. `False` gives random weights. Defaults to `True`.
            **kwargs: constructor arguments that replace the saved ones (`sampler`,
                `num_steps`, ...), and `dtype`.

        Raises:
            ValueError: if the directory is missing, incomplete or holds another model.
            TypeError: for unknown arguments.
        """
        allowed = set(cls.__init__.__code__.co_varnames[1 : cls.__init__.__code__.co_argcount])
        checks.no_unknown(f"{cls.__name__}.from_preset", kwargs, allowed | {"dtype", "name"})
        preset = os.fspath(preset)
        if preset.startswith(_HANDLES):
            return super().from_preset(preset, load_weights=load_weights, **kwargs)
        check_directory(preset, load_weights)
        try:
            return super().from_preset(preset, load_weights=load_weights, **kwargs)
        except (TypeError, ValueError):
            raise
        except Exception as error:  # h5py, SentencePiece and TensorFlow have errors of their own
            raise ValueError(f"The preset {preset!r} is damaged: {error}") from error


def check_directory(path, load_weights=True):
    """Raise `ValueError` unless `path` is a complete preset of an ELFGenerator."""
    if not os.path.isdir(path):
        raise ValueError(
            f"`preset` must be a directory written by `save_to_preset` or a handle such as "
            f"'hf://user/name'. Received: {path!r}, which does not exist as a directory"
        )
    for file, expected in ((_CONFIG, "keras_elf>ELFBackbone"), (_TASK, "keras_elf>ELFGenerator")):
        found = _read(path, file).get("registered_name")
        if found != expected:
            raise ValueError(f"{file} in preset {path!r} holds {found!r}, expected {expected!r}")
    if load_weights and not any(os.path.isfile(os.path.join(path, w)) for w in _WEIGHTS):
        raise ValueError(
            f"The preset {path!r} is incomplete: it has none of {list(_WEIGHTS)}. Pass "
            "load_weights=False for random weights"
        )
    task = _read(path, _TASK)["config"]
    needed = []
    if load_weights and task.get("encoder") is not None:
        needed.append("task.weights.h5")
    if task.get("preprocessor") is not None:
        needed += ["preprocessor.json", "tokenizer.json", "assets/tokenizer/vocabulary.spm"]
    missing = [file for file in needed if not os.path.isfile(os.path.join(path, file))]
    if missing:
        raise ValueError(f"The preset {path!r} is incomplete: {missing} are missing")
    for file in needed:
        if file.endswith(".json"):
            _read(path, file)


def _read(path, file):
    try:
        with open(os.path.join(path, file), encoding="utf-8") as stream:
            content = json.load(stream)
    except OSError as error:
        raise ValueError(f"The preset {path!r} is incomplete: {file} cannot be read") from error
    except ValueError as error:
        raise ValueError(f"{file} in preset {path!r} is not valid JSON: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("config"), dict):
        raise ValueError(f"{file} in preset {path!r} is not a Keras configuration")
    return content


def _move_into_place(beside, target):
    if not os.path.exists(target):
        os.chmod(beside, 0o755)  # mkdtemp makes directories that only their owner can read
        os.rename(beside, target)
        return
    # A directory in use may hold files of the user's own: only ours are replaced, and the
    # configuration last, so that a preset is never announced before its weights are there.
    files = [
        os.path.relpath(os.path.join(folder, name), beside)
        for folder, _, names in os.walk(beside)
        for name in names
    ]
    for file in sorted(files, key=lambda name: (name in (_CONFIG, _TASK), name)):
        os.makedirs(os.path.dirname(os.path.join(target, file)), exist_ok=True)
        os.replace(os.path.join(beside, file), os.path.join(target, file))
    for file in set(_OPTIONAL) - set(files):
        # Left over from an earlier preset, it would be read together with the new one.
        if os.path.isfile(os.path.join(target, file)):
            os.remove(os.path.join(target, file))
