"""Arrays of a checkpoint, by name, into variables: all of them or, on an error, none."""

import numpy as np
from keras import ops


def assign(expected, arrays, source, model, problems=()):
    """Assign arrays to variables under a strict map.

    Args:
        expected: dict from name to `(keras.Variable, bool)`; the flag says that the array is
            `(out, in)` where the variable is `(in, out)`.
        arrays: dict from name to array, or to what has `shape` and `read()`, which are read
            one at a time.
        source: str. Where the arrays came from, for messages.
        model: str. What the variables belong to, for messages.
        problems: list of str. What is already known to be wrong, to be listed with the rest.

    Raises:
        ValueError: if names are missing, unknown or of another shape, of which it lists up to
            twenty each; nothing is assigned then. Or if an array has values that are not
            finite.
    """
    problems = list(problems) + _listed("missing", set(expected) - set(arrays))
    problems += _listed("unknown", set(arrays) - set(expected))
    shapes = []
    for name in sorted(set(arrays) & set(expected)):
        variable, transposed = expected[name]
        wanted = tuple(variable.shape)[::-1] if transposed else tuple(variable.shape)
        if tuple(arrays[name].shape) != wanted:
            shapes.append(f"{name} is {tuple(arrays[name].shape)}, expected {wanted}")
    problems += _listed("of another shape", shapes)
    if problems:
        raise ValueError(f"The arrays of {source} do not fit {model}:\n- " + "\n- ".join(problems))
    for name, (variable, transposed) in expected.items():
        variable.assign(_value(name, arrays[name], transposed, source))


def differing(expected, arrays):
    """Names whose variable does not hold exactly the array's values in its own dtype."""
    wrong = []
    for name, (variable, transposed) in expected.items():
        held = ops.convert_to_numpy(variable.value)
        if not np.array_equal(held, _value(name, arrays[name], transposed, "").astype(held.dtype)):
            wrong.append(name)
    return wrong


def _value(name, array, transposed, source):
    values = np.asarray(array.read() if hasattr(array, "read") else array)
    # Not numpy's own name for it: bfloat16 is of another package.
    if not (np.issubdtype(values.dtype, np.floating) or values.dtype.name == "bfloat16"):
        raise ValueError(f"{name} in {source} must be of a float dtype. Received: {values.dtype}")
    values = values.astype("float32", copy=False)
    if not np.isfinite(values).all():
        raise ValueError(f"{name} in {source} holds values that are not finite")
    return values.T if transposed else values


def _listed(kind, names, limit=20):
    if not names:
        return []
    names = sorted(names)
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return [f"{len(names)} {kind}: {', '.join(names[:limit])}{more}"]
