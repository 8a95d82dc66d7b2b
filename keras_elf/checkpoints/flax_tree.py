"""The parts of a flax training state: raw and EMA weights by name, and the step."""

from keras_elf.checkpoints.reading import damaged, shown


def weights_of(path, state, is_array):
    """Sort a nested dict into `{"raw": {name: array}, "ema": {name: array}}`.

    Args:
        path: the file it is from, for messages.
        state: nested dict, of a training state (`params`, `ema_params1`, ...) or of bare
            parameters.
        is_array: callable that tells an array from a dict.
    """
    if not isinstance(state, dict):
        raise damaged(path, f"it holds a {type(state).__name__}, not a training state")
    trees = {"raw": state.get("params"), "ema": state.get("ema_params1")}
    if not isinstance(trees["raw"], dict):
        trees = {"raw": state}
    weights = {}
    for kind, tree in trees.items():
        if tree is None:
            continue
        if not isinstance(tree, dict):
            raise damaged(path, f"its {kind} weights are a {type(tree).__name__}, not a dict")
        weights[kind] = dict(_flat(path, tree, "", is_array))
        if not weights[kind]:
            raise damaged(path, f"its {kind} weights are empty")
    return weights


def _flat(path, tree, prefix, is_array):
    for key, value in tree.items():
        # A slash inside of a key would make two different trees spell the same name.
        if not key or "/" in key:
            raise damaged(path, f"the key {shown(key)} is not a parameter's name")
        if is_array(value):
            yield prefix + key, value
        elif isinstance(value, dict):
            yield from _flat(path, value, f"{prefix}{key}/", is_array)
        else:
            raise damaged(path, f"{shown(prefix + key)} is not an array")
