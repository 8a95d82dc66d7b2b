"""From a model to the files of a preset, of whatever registered class."""

import datetime
import inspect
import json
import math
import os
import pathlib
import sys

import keras

from keras_elf import denoiser
from keras_elf.keras_hub_quietly import keras_hub
from keras_elf.presets import classes, preset_directory

# State of a training and shapes of the last call: no part of a preset.
_NOT_OURS = ("compile_config", "build_config")


def check_saveable(part, role):
    """Raise `ValueError` if `part` could be saved but not loaded again.

    Args:
        part: a model, layer or other object with a configuration.
        role: str. What it is called in messages, such as `"the network"`.
    """
    name = type(part).__name__
    try:
        serialized = keras.saving.serialize_keras_object(part)
        json.dumps(serialized)
    except (NotImplementedError, TypeError) as error:
        raise ValueError(
            f"{role} {name} cannot be saved: it has no `get_config` that gives its constructor's "
            f"arguments as JSON. Write one that returns them by name, next to the entries of "
            f"`super().get_config()`. ({str(error).strip().splitlines()[0]})"
        ) from error
    _check_registered(serialized, role)
    _check_constructor(type(part), serialized["config"], role)


def _check_registered(serialized, role):
    if isinstance(serialized, list):
        for value in serialized:
            _check_registered(value, role)
    if not isinstance(serialized, dict):
        return
    if "class_name" in serialized and not classes.is_known(serialized):
        name = serialized["class_name"]
        raise ValueError(
            f"{role} cannot be saved: its class or that of a part, {name} of module "
            f"{serialized.get('module')!r}, is not registered, so nothing could load it. Add this "
            'line above the class: `@keras.saving.register_keras_serializable(package="my_parts")`'
        )
    for value in serialized.values():
        _check_registered(value, role)


def _check_constructor(cls, config, role):
    """A constructor that refuses the configuration would be found out when it is too late."""
    given = inspect.getattr_static(cls, "from_config")
    keras_own = (keras.layers.Layer, keras.Model, keras_hub.models.Backbone)
    if given not in [inspect.getattr_static(base, "from_config") for base in keras_own]:
        return
    parameters = inspect.signature(cls.__init__).parameters.values()
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return
    surplus = set(config) - {p.name for p in parameters}
    if surplus:
        raise ValueError(
            f"{role} {cls.__name__} cannot be saved: `get_config` gives {sorted(surplus)}, which "
            "its constructor does not take. Give the constructor `**kwargs` and pass them to "
            "`super().__init__`"
        )


def save_network(network, directory, max_shard_size=10):
    """Write configuration, metadata and weights of a network of any class.

    Args:
        network: a keras_hub `Backbone`, a `keras.Model` or a `keras.layers.Layer`.
        directory: str. Exists.
        max_shard_size: int or float. Largest weights file in GB. Defaults to `10`.
    """
    denoiser.ensure_built(network)
    if hasattr(network, "save_to_preset"):
        network.save_to_preset(directory, max_shard_size=max_shard_size)
        return
    config = _written(keras.saving.serialize_keras_object(network))
    preset_directory.write_json(directory, preset_directory.CONFIG, config)
    sizes = [math.prod(v.shape) for v in network.variables]
    facts = {
        "keras_version": keras.version(),
        "parameter_count": sum(sizes),
        "date_saved": datetime.datetime.now().strftime("%Y-%m-%d@%H:%M:%S"),
    }
    preset_directory.write_json(directory, preset_directory.METADATA, facts)
    if max_shard_size is not None and 4 * sum(sizes) > max_shard_size * 2**30:
        place = os.path.join(directory, preset_directory.SHARDS)
        keras.saving.save_weights(network, place, max_shard_size=max_shard_size)
    else:
        keras.saving.save_weights(network, os.path.join(directory, preset_directory.WEIGHTS))


def name_modules(directory):
    """Give the classes in a network's configuration modules that can be imported."""
    config = preset_directory.read_plain_json(directory, preset_directory.CONFIG)
    preset_directory.write_json(directory, preset_directory.CONFIG, _written(config))


def save_model(model, directory, max_shard_size=10):
    """Write all files of a whole model."""
    config = _written(keras.saving.serialize_keras_object(model))
    preset_directory.write_json(directory, preset_directory.TASK, config)
    place = os.path.join(directory, preset_directory.TASK_WEIGHTS)
    deferred = model.latent_encoder.deferred
    if deferred is not None:
        with deferred.left_unloaded():
            model.save_task_weights(place)
        deferred.source.write(directory)
    elif model.has_task_weights():
        model.save_task_weights(place)
    save_network(model.backbone, directory, max_shard_size)
    if model.preprocessor is not None:
        model.preprocessor.save_to_preset(directory)
    preset_directory.mark(directory)


def _written(value):
    """A serialised part as it is written: without state, with modules that can be imported."""
    if isinstance(value, list):
        return [_written(item) for item in value]
    if not isinstance(value, dict):
        return value
    written = {name: _written(item) for name, item in value.items() if name not in _NOT_OURS}
    # Keras writes no module at all for the classes of a script.
    name = written.get("registered_name")
    registered = keras.saving.get_registered_object(name) if isinstance(name, str) else None
    if "class_name" in written and getattr(registered, "__module__", None) == "__main__":
        written["module"] = _name_of_main()
    return written


def _name_of_main():
    """Name by which others import the script that runs, `"__main__"` where there is none."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return spec.name
    stem = pathlib.Path(getattr(main, "__file__", None) or "").stem
    return stem if stem.isidentifier() else "__main__"
