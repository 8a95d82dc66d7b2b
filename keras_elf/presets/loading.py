"""From a preset directory to a model or a network, of whatever registered class."""

import contextlib
import os

import keras

from keras_elf import checks, denoiser
from keras_elf.initialization import weights_to_come
from keras_elf.presets import classes, encoder_source, preset_directory, safety
from keras_elf.presets.weight_budget import weight_budget

_SCALES = ("guidance_scale", "self_cond_guidance_scale")


def load_model(asked, path, load_weights, options):
    """A whole model from a directory that `save_to_preset` wrote.

    Args:
        asked: type. The class whose `from_preset` was called: the saved class, one above it
            or one derived from it.
        path: str. The directory.
        load_weights: bool. `False` gives random weights.
        options: dict. Constructor arguments that replace the saved ones, and `dtype`.

    Raises:
        ValueError: if the preset is incomplete, damaged, refused or of another class.
        TypeError: for unknown arguments.
    """
    wants_preprocessor = options.get("preprocessor", True) is True
    task, files = preset_directory.check_directory(path, load_weights, wants_preprocessor)
    cls = classes.chosen_class(asked, task, preset_directory.TASK, path)
    allowed = classes.argument_names(cls) | {"dtype", "name"}
    checks.no_unknown(f"{cls.__name__}.from_preset", options, allowed)
    options = dict(options)
    dtype = options.pop("dtype", None)
    network = {**task["config"]["backbone"]}
    network["config"] = _with_dtype(network["config"], dtype)
    saved = dict(task["config"])
    if options.get("guidance") is not None:
        # Rules take the place of their short form.
        saved = {k: v for k, v in saved.items() if k not in _SCALES}
    scales = {}
    if saved.get("guidance") is not None:
        # Scales take the place of those of the saved rules, as in `generate`.
        scales = {name: options.pop(name) for name in _SCALES if name in options}
    config = {**saved, "backbone": network, **options}
    later = None
    if files and isinstance(config.get("encoder"), dict):
        later = encoder_source.deferred(path, config["encoder"])
        config["encoder"] = later or config["encoder"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(_building(path, files))
        if later is not None:
            stack.enter_context(later.left_unloaded())
        model = cls.from_config(config)
        if scales:
            model.sampling = model.sampling.updated(**scales)
        if hasattr(model.preprocessor, "load_preset_assets") and wants_preprocessor:
            model.preprocessor.load_preset_assets(path)
        denoiser.ensure_built(model.backbone)
        if preset_directory.TASK_WEIGHTS in files:
            model.load_task_weights(os.path.join(path, preset_directory.TASK_WEIGHTS))
        if load_weights:
            _load_network_weights(model.backbone, path)
    return model


def load_network(asked, path, load_weights, options):
    """The network of a preset alone; arguments and errors as those of `load_model`."""
    serialized, files = preset_directory.check_network(path, load_weights)
    cls = classes.chosen_class(asked, serialized, preset_directory.CONFIG, path)
    options = dict(options)
    dtype = options.pop("dtype", None)
    config = {**_with_dtype(serialized["config"], dtype), **options}
    with _building(path, files):
        network = cls.from_config(config)
        denoiser.ensure_built(network)
        if load_weights:
            _load_network_weights(network, path)
    return network


def _load_network_weights(network, path):
    files = (preset_directory.WEIGHTS, preset_directory.SHARDS)
    places = [os.path.join(path, file) for file in files]
    keras.saving.load_weights(network, next(place for place in places if os.path.isfile(place)))


@contextlib.contextmanager
def _building(path, files):
    """Within the block a model is built from what `path` holds; all errors are ours."""
    to_come = weights_to_come() if files else contextlib.nullcontext()
    limit, held = safety.most_weights(path, files)
    # Layers that are quantised make their weights twice, as floats and as integers.
    try:
        with to_come, weight_budget(path, 2 * limit, held):
            yield
    except (TypeError, ValueError, ImportError, MemoryError):
        raise
    except Exception as error:  # h5py, SentencePiece and TensorFlow have errors of their own
        raise ValueError(f"The preset {path!r} is damaged: {error}") from error


def _with_dtype(config, dtype):
    """A network's configuration under a policy: the one asked for, or the saved one.

    A network saved in float32 takes the global policy, as in keras_hub.
    """
    if dtype is None:
        if "dtype" not in config:
            return dict(config)
        dtype = _policy_name(config["dtype"])
        if dtype == "float32":
            dtype = keras.config.dtype_policy()
        elif dtype is None:
            return dict(config)
    return {**config, "dtype": dtype}


def _policy_name(policy):
    """Name of a simple serialised dtype policy, or `None`."""
    if isinstance(policy, dict) and policy.get("class_name") == "DTypePolicy":
        return policy.get("config", {}).get("name")
    return policy if isinstance(policy, str) else None
