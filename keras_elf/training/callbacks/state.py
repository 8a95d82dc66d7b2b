"""Everything that a training step reads or writes, as named arrays and back."""

import json

import keras
import numpy as np
from keras import ops

from keras_elf.training.callbacks.fit_callback import synchronise

SECTIONS = ("model", "optimizer", "metrics")
# What changes the losses, of a model's configuration.
SETTINGS = ("backbone", "encoder", "objective", "latent_mean", "latent_std")
SETTINGS = (*SETTINGS, "label_drop_probability", "loss_on_padding", "mask_probability")


def sections(model):
    """Dict from section to its variables. The model's hold all seed generators' states."""
    return {
        "model": model.variables,
        "optimizer": model.optimizer.variables,
        "metrics": model.metrics_variables,
    }


def collect(model, only=SECTIONS):
    """Dict of arrays, `section/number:path`, as they are now, also in the middle of `fit`."""
    synchronise(model)
    return {
        name: np.asarray(ops.convert_to_numpy(variable.value))
        for section, variables in sections(model).items()
        for name, variable in _named(section, variables)
        if section in only
    }


def nonfinite(arrays):
    """Names of the arrays that hold a value that is not finite."""
    return [name for name, array in arrays.items() if not _finite(array)]


def check(model, arrays, source):
    """Raise `ValueError` where arrays do not fit the model, its optimizer or its metrics."""
    for section, variables in sections(model).items():
        stored = [(n, a) for n, a in arrays.items() if n.split("/", 1)[0] == section]
        problems = []
        if len(stored) != len(variables):
            problems.append(f"{len(stored)} arrays, here {len(variables)}")
        for (name, array), variable in zip(stored, variables, strict=False):
            leaf = name.rsplit("/", 1)[-1].rsplit(":", 1)[-1]
            if array.shape != tuple(variable.shape):
                problems.append(f"{name} {array.shape}, here {tuple(variable.shape)}")
            elif section == "model" and leaf != variable.path.rsplit("/", 1)[-1]:
                problems.append(f"{name}, here {variable.path}")
        if problems:
            more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
            raise ValueError(
                f"{source} is of another {section}, so nothing was restored. It holds "
                f"{'; '.join(problems[:3])}{more}. Build and compile the model as in the run "
                "that was saved."
            )


def assign(model, arrays, only=SECTIONS):
    """Set variables to arrays that `check` has accepted."""
    # Keras numbers names over all models of a process, so variables are matched by their order.
    numbered = {name.split(":", 1)[0]: array for name, array in arrays.items()}
    for section in only:
        for name, variable in _named(section, sections(model)[section]):
            array = ops.convert_to_tensor(numbered[name.split(":", 1)[0]])
            variable.assign(ops.cast(array, variable.dtype))


def generators():
    """States of PyTorch's own random generators as arrays; empty on other backends.

    Keras's dropout draws from them where it has no seed of its own.
    """
    if keras.backend.backend() != "torch":
        return {}
    import torch

    states = [torch.get_rng_state(), *torch.cuda.get_rng_state_all()]
    return {f"torch/{n:05d}:generator": one.cpu().numpy() for n, one in enumerate(states)}


def draw_as_loader():
    """Draw what PyTorch's loader of the data draws at the end of a whole epoch.

    Keras prepares the next epoch there, but not where an epoch that started late runs out of
    data, or is stopped at its last batch; the draw comes from the generator that serves
    dropout too.
    """
    if keras.backend.backend() == "torch":
        import torch

        torch.empty((), dtype=torch.int64).random_()


def set_generators(arrays):
    """Set PyTorch's own random generators, where arrays hold their states."""
    found = [array for name, array in sorted(arrays.items()) if name.startswith("torch/")]
    if keras.backend.backend() != "torch" or not found:
        return
    import torch

    torch.set_rng_state(torch.from_numpy(found[0].copy()))
    # Checkpoints may move between machines with other devices.
    for device, one in enumerate(found[1 : 1 + torch.cuda.device_count()]):
        torch.cuda.set_rng_state(torch.from_numpy(one.copy()), device)


def settings(model):
    """What of the configuration changes the losses: dict from name to what JSON can hold."""
    config = model.get_config()
    optimizer = keras.saving.serialize_keras_object(model.optimizer)
    found = {
        **{name: config.get(name) for name in SETTINGS},
        "class of optimizer": optimizer["class_name"],
        "optimizer": optimizer["config"],
        "policy": model.dtype_policy.name,
    }
    return json.loads(json.dumps(_nameless(found), default=str))


def differences(one, other, path=""):
    """What differs between two nests of dicts: list of `path: one, other`."""
    if isinstance(one, dict) and isinstance(other, dict):
        found = []
        for key in sorted(set(one) | set(other)):
            found += differences(one.get(key), other.get(key), f"{path}.{key}" if path else key)
        return found
    # NaN differs from itself, so the texts are compared.
    return [] if json.dumps(one) == json.dumps(other) else [f"{path}: {one!r}, here {other!r}"]


def _named(section, variables):
    return [(f"{section}/{n:05d}:{v.path}", v) for n, v in enumerate(variables)]


def _nameless(nest):
    # Keras numbers the layers that it names, over all models of a process.
    if isinstance(nest, dict):
        skipped = ("name", "build_config", "seed")
        return {k: _nameless(v) for k, v in nest.items() if k not in skipped}
    if isinstance(nest, (list, tuple)):
        return [_nameless(v) for v in nest]
    return nest


def _finite(array):
    if array.dtype.kind in "iub":
        return True
    if array.dtype.kind == "V" or array.dtype.name == "bfloat16":
        array = array.astype("float32")
    return bool(np.isfinite(array).all())
