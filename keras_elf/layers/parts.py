"""Layers kept in lists, told to PyTorch."""

import keras


def register_parts(owner):
    """Make the layers in lists and dicts of a layer its submodules on PyTorch.

    PyTorch registers what is an attribute by itself. Keras adds a table of all variables by
    their paths, but only where it builds the layer itself, and of two variables of one path, as
    of two stacks of blocks, it knows one. `zero_grad` passes the others by, so that their
    gradients add up from step to step.

    Args:
        owner: `keras.layers.Layer` or `keras.Model`, with all its layers made. Nothing happens
            on other backends.
    """
    if keras.backend.backend() != "torch":
        return
    known = {id(module) for module in owner.children()}
    for name, value in list(vars(owner).items()):
        if name.startswith("_") or not isinstance(value, (list, tuple, dict)):
            continue
        for i, layer in enumerate(keras.tree.flatten(value)):
            if isinstance(layer, keras.layers.Layer) and id(layer) not in known:
                owner.add_module(f"{name}_part_{i}", layer)
                known.add(id(layer))
