"""Preset directories on disk: written whole or not at all, checked before they are loaded."""

import contextlib
import json
import os
import re
import shutil
import tempfile

from keras_elf.presets import classes, safety
from keras_elf.version import __version__

CONFIG, TASK = "config.json", "task.json"
WEIGHTS, SHARDS, TASK_WEIGHTS = "model.weights.h5", "model.weights.json", "task.weights.h5"
VOCABULARY = "assets/tokenizer/vocabulary.spm"
MANIFEST, METADATA = "manifest.json", "metadata.json"
# Of a preset that takes the encoder of a published model, and holds no weights of one.
ENCODER = "encoder.json"
MARK = "keras_elf_version"
# Directories being written now: the parts of a model save themselves into that of the whole.
_OPEN = set()
_OPTIONAL = (
    *(WEIGHTS, SHARDS, TASK, TASK_WEIGHTS, MANIFEST, ENCODER),
    *("preprocessor.json", "tokenizer.json", "preset.json", "recipe.json"),
)
_SHARD = re.compile(r"model_\d+\.weights\.h5")


@contextlib.contextmanager
def written_whole(preset_dir):
    """Gives a directory to write into, which becomes `preset_dir` when the block ends well.

    What is there already is left untouched by a failure. Files of an earlier preset are
    replaced, others stay.

    Raises:
        ValueError: if the target cannot be written.
    """
    if not os.fspath(preset_dir):
        raise ValueError("`preset_dir` must name a directory. Received: ''")
    target = os.path.abspath(os.path.expanduser(os.fspath(preset_dir)))
    if target in _OPEN:
        yield target
        return
    _check_target(target)
    beside = None
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        parent, name = os.path.split(target)
        beside = tempfile.mkdtemp(prefix=f".{name}-", dir=parent)
        _OPEN.add(beside)
        yield beside
        _move_into_place(beside, target)
    except OSError as error:
        raise ValueError(f"`preset_dir` cannot be written: {target!r} ({error})") from error
    finally:
        if beside is not None:
            _OPEN.discard(beside)
            shutil.rmtree(beside, ignore_errors=True)


def _check_target(target):
    """Raise `ValueError` if files of the user's own are in the way."""
    if not os.path.lexists(target):
        return
    if not os.path.isdir(target):
        raise ValueError(f"`preset_dir` cannot be written: {target!r} is a file")
    in_the_way = sorted({CONFIG, *_OPTIONAL, METADATA} & set(os.listdir(target)))
    ours = _is_ours(target, CONFIG) or _is_ours(target, "preprocessor.json")
    foreign = CONFIG in in_the_way and not _is_ours(target, CONFIG)
    if in_the_way and (foreign or not ours):
        raise ValueError(
            f"`preset_dir` {target!r} holds {in_the_way}, which belong to something else and "
            "would be replaced. Choose another directory"
        )


def _is_ours(directory, file):
    """Whether a file was written by this library: it holds a class of ours, or we marked it."""
    content = read_plain_json(directory, file)
    name = content.get("registered_name")
    if isinstance(name, str) and name.startswith("keras_elf>"):
        return True
    return bool(name) and MARK in read_plain_json(directory, METADATA)


def read_plain_json(directory, file):
    """The dict in a small JSON file that holds no class; empty if there is none to read."""
    try:
        with open(os.path.join(directory, file), encoding="utf-8") as stream:
            content = json.load(stream)
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def mark(directory):
    """Note in a preset's metadata that this library wrote it and may replace it."""
    content = {**read_plain_json(directory, METADATA), MARK: __version__}
    write_json(directory, METADATA, content)


def write_json(directory, file, content):
    """Write a JSON file of a preset."""
    with open(os.path.join(directory, file), "w", encoding="utf-8") as stream:
        json.dump(content, stream, indent=4)


def check_directory(path, load_weights=True, preprocessor=True):
    """Raise `ValueError` unless `path` is a complete and harmless preset of a whole model.

    Args:
        path: str.
        load_weights: bool. Whether weights will be asked for. Defaults to `True`.
        preprocessor: bool. Whether the preset's preprocessor will be. Defaults to `True`.

    Returns:
        `(task, weight_files)`: what task.json holds, and the names of the files with the
        weights that will be asked for.
    """
    _check_exists(path)
    network = safety.read_json(path, CONFIG)
    classes.check_network(network, CONFIG, path)
    if not os.path.lexists(os.path.join(path, TASK)):
        raise ValueError(
            f"The preset {path!r} is incomplete: without {TASK} it holds the network alone. "
            "Load it with "
            "`ELFBackbone.from_preset`; a checkpoint imported with `encoder=` (--encoder) gives a "
            "whole model"
        )
    task = safety.read_json(path, TASK)
    inner = task["config"].get("backbone")
    found = inner.get("registered_name") if isinstance(inner, dict) else inner
    if found != network["registered_name"] or not isinstance(inner.get("config"), dict):
        raise ValueError(
            f"{TASK} in preset {path!r} holds the network {found!r}, expected "
            f"{network['registered_name']!r} as in {CONFIG}"
        )
    weight_files = network_weight_files(path) if load_weights else []
    needed = []
    if load_weights and task["config"].get("encoder") is not None:
        needed.append(TASK_WEIGHTS)
    if preprocessor and task["config"].get("preprocessor") is not None:
        needed += ["preprocessor.json", "tokenizer.json", VOCABULARY]
    missing = [file for file in needed if not os.path.isfile(os.path.join(path, file))]
    if missing:
        raise ValueError(f"The preset {path!r} is incomplete: {missing} are missing")
    for file in needed:
        if file.endswith(".json"):
            safety.read_json(path, file)
    if VOCABULARY in needed:
        size = os.path.getsize(os.path.join(path, VOCABULARY))
        if size > safety.MAX_VOCABULARY_BYTES:
            raise ValueError(f"The preset {path!r} is refused: its vocabulary has {size:,} bytes")
    has_task_weights = os.path.isfile(os.path.join(path, TASK_WEIGHTS))
    weight_files += [TASK_WEIGHTS] * (load_weights and has_task_weights)
    safety.check_sizes(path, task, weight_files)
    return task, weight_files


def check_network(path, load_weights=True):
    """The same as `check_directory` for a network alone; returns `(config, weight_files)`."""
    _check_exists(path)
    config = safety.read_json(path, CONFIG)
    classes.check_network(config, CONFIG, path)
    weight_files = network_weight_files(path) if load_weights else []
    safety.check_sizes(path, config, weight_files)
    return config, weight_files


def _check_exists(path):
    if not os.path.isdir(path):
        raise ValueError(
            "`preset` must be a directory written by `save_to_preset`, the name of a preset or a "
            f"handle such as 'hf://user/name'. Received: {path!r}, which is not a directory"
        )
    # Without a configuration it may be any directory, and a large one to walk through.
    if os.path.lexists(os.path.join(path, CONFIG)):
        safety.check_links(path)


def network_weight_files(path):
    """Names of the files with the network's weights: one, or several shards."""
    if os.path.isfile(os.path.join(path, WEIGHTS)):
        return [WEIGHTS]
    if not os.path.isfile(os.path.join(path, SHARDS)):
        raise ValueError(
            f"The preset {path!r} is incomplete: it has none of {[WEIGHTS, SHARDS]}. Pass "
            "load_weights=False for random weights"
        )
    try:
        with open(os.path.join(path, SHARDS), encoding="utf-8") as stream:
            values = json.load(stream)["weight_map"].values()
        names = {n for value in values for n in (value if isinstance(value, list) else [value])}
        sound = all(os.path.basename(name) == name for name in names)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"{SHARDS} in preset {path!r} is damaged: {error}") from error
    if not sound:
        raise ValueError(f"{SHARDS} in preset {path!r} is refused: it names files outside it")
    missing = [name for name in sorted(names) if not os.path.isfile(os.path.join(path, name))]
    if missing or not names:
        raise ValueError(f"The preset {path!r} is incomplete: {missing or 'shards'} are missing")
    return sorted(names)


def _move_into_place(beside, target):
    if not os.path.exists(target):
        # mkdtemp makes directories that only their owner can read.
        umask = os.umask(0o022)
        os.umask(umask)
        os.chmod(beside, 0o777 & ~umask)
        os.rename(beside, target)
        return
    # A directory in use may hold files of the user's own: only ours are replaced, and the
    # configuration last, so that a preset is never announced before its weights are there.
    files = [
        os.path.relpath(os.path.join(folder, name), beside)
        for folder, _, names in os.walk(beside)
        for name in names
    ]
    for file in sorted(files, key=lambda name: (name in (CONFIG, TASK), name)):
        os.makedirs(os.path.dirname(os.path.join(target, file)), exist_ok=True)
        os.replace(os.path.join(beside, file), os.path.join(target, file))
    shards = {name for name in os.listdir(target) if _SHARD.fullmatch(name)}
    for file in ({*_OPTIONAL} | shards) - set(files):
        # Left over from an earlier preset, it would be read together with the new one.
        if os.path.isfile(os.path.join(target, file)):
            os.remove(os.path.join(target, file))
