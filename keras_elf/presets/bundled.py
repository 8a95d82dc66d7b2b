"""The presets that come with the package: names, facts about them, where they lie."""

import difflib
import functools
import json
import os
import pathlib

_HERE = pathlib.Path(__file__).parent


@functools.cache
def directories():
    """dict from the name of each preset to its directory."""
    # Inside an installed package, beside it in a checkout of the source.
    for root in (_HERE / "data", _HERE.parent.parent / "presets"):
        found = {path.parent.name: path.parent for path in sorted(root.glob("*/preset.json"))}
        if found:
            return found
    return {}


def information(name):
    """What is known of a preset.

    Args:
        name: str. One of `directories()`.

    Returns:
        dict of `description`, `parameters` (int, those of the backbone), `license`, `paper`,
        `weights` (the hub repository they are loaded from, or `"in the package"`), `encoder`
        (where the text encoder comes from) and `published` (a list of dicts: figures from the
        paper with the settings they belong to).

    Raises:
        ValueError: for another name; the nearest one is suggested.
    """
    return json.loads((directory(name) / "preset.json").read_text(encoding="utf-8"))


def directory(name):
    """`pathlib.Path` of the directory of a preset; raises `ValueError` for another name."""
    if name not in directories():
        raise ValueError(unknown(name))
    return directories()[name]


def has_weights(name):
    """Whether the weights of a preset are in the package."""
    return (directory(name) / "model.weights.h5").is_file()


def is_bare_name(preset):
    """Whether `preset` is written as a name: no path, no handle."""
    return bool(preset) and "://" not in preset and os.path.basename(preset) == preset


def unknown(name):
    """The message for a name that no preset has."""
    near = difflib.get_close_matches(str(name), directories(), n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return (
        f"There is no preset named {name!r}, nor a directory of this name.{hint} Presets: "
        f"{sorted(directories())}; or pass the directory of a saved model, or a handle such as "
        "'hf://user/name'"
    )


class Presets:
    """Class attribute that reads as a dict from preset name to `information(name)`."""

    def __get__(self, instance, owner=None):
        return {name: information(name) for name in directories()}
