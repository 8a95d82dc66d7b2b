"""What the checks of all parts share: how they complain, copy a part and compare numbers."""

import json

import keras
import numpy as np
from keras import ops

from keras_elf.configurable import Configurable, signature


def expect(right, message):
    """Raise `AssertionError` with `message` unless `right`."""
    if not right:
        raise AssertionError(message)


def array(x):
    """NumPy array of a tensor."""
    return np.array(ops.convert_to_numpy(x))


def normal(*shape, seed=0):
    """float32 NumPy standard normals, the same at every call."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype("float32")


def apart(one, other):
    """Largest difference of two tensors, relative to the size of the first; inf for NaN."""
    one, other = (array(x).astype("float64") for x in (one, other))
    if one.shape != other.shape:
        return float("inf")
    if not one.size:
        return 0.0
    difference = np.abs(one - other).max() / max(1.0, np.abs(one).max())
    return float(difference) if np.isfinite(difference) else float("inf")


def expect_equal(one, other, message, tolerance=1e-4):
    """Raise `AssertionError` where two tensors differ by more than rounding."""
    found = apart(one, other)
    expect(found <= tolerance, f"{message} (they differ by {found:.2g} of their size)")


def expect_tensor(x, shape, name):
    """Raise `AssertionError` unless `x` is a finite float32 tensor of `shape`."""
    found = tuple(getattr(x, "shape", ("no", "tensor")))
    expect(
        found == tuple(shape), f"{name} must have the shape {tuple(shape)}. Received shape: {found}"
    )
    dtype = keras.backend.standardize_dtype(x.dtype)
    expect(dtype == "float32", f"{name} must be float32: cast it. Received dtype: {dtype}")
    expect(np.isfinite(array(x)).all(), f"{name} must be finite. Received numbers that are not")


def expect_registered(part):
    """Raise `AssertionError` where Keras could not find the class of a saved `part`."""
    cls = type(part)
    known = keras.saving.get_registered_object(keras.saving.get_registered_name(cls))
    expect(
        known is cls,
        f"{cls.__name__} is not registered, so that nothing which holds it could be loaded. "
        'Decorate it with @keras.saving.register_keras_serializable(package="your_package")',
    )


def copied(part):
    """A new part of the same configuration, through what is written to a file.

    Raises:
        AssertionError: for a class that is not registered, or a `get_config` and `from_config`
            that do not fit each other.
    """
    expect_registered(part)
    name = type(part).__name__
    serialize = keras.saving.serialize_keras_object
    try:
        text = json.dumps(serialize(part))
        copy = keras.saving.deserialize_keras_object(json.loads(text))
    except (TypeError, ValueError, KeyError, NotImplementedError) as error:
        raise AssertionError(
            f"{name} could not be made again from its `get_config`: {error}. Have it return all "
            "arguments of the constructor, in numbers, strings, lists and dicts"
        ) from error
    expect(type(copy) is type(part), f"The config of {name} makes a {type(copy).__name__}")
    before, after = json.loads(text)["config"], serialize(copy)["config"]
    changed = {k: v for k, v in before.items() if json.dumps(after.get(k)) != json.dumps(v)}
    found = {k: after.get(k) for k in changed}
    expect(
        not changed,
        f"A {name} made from the config of another has another config: an argument is missing in "
        f"`get_config`, or not kept as it was given. It was {changed}, and is {found}",
    )
    if isinstance(part, Configurable):
        expect(
            signature(copy) == signature(part),
            f"A {name} made from the config of another has other attributes, so that compiled "
            "functions would not be shared. Derive all attributes from the constructor's arguments",
        )
    return copy


def randomised(layer, scale=0.3, seed=0):
    """`layer` with random numbers in all its weights, the same for equal shapes."""
    rng = np.random.default_rng(seed)
    for variable in layer.weights:
        if "float" in variable.dtype:
            variable.assign(scale * rng.standard_normal(variable.shape).astype("float32"))
    return layer


def same_weights(layer, other):
    """Give `other` the weights of `layer`; raises `AssertionError` where they do not fit."""
    shapes = [tuple(v.shape) for v in layer.weights], [tuple(v.shape) for v in other.weights]
    expect(
        shapes[0] == shapes[1],
        f"{type(layer).__name__} has other weights when it is made from its config. Before: "
        f"{shapes[0]}, after: {shapes[1]}",
    )
    for variable, copy in zip(layer.weights, other.weights, strict=True):
        copy.assign(variable)
    return other


def refuse_unreached(name, variables, gradients, of):
    """Raise `AssertionError` for weights whose gradient is zero or not finite."""
    for variable, gradient in zip(variables, gradients, strict=True):
        expect(
            np.isfinite(gradient).all(),
            f"The gradient of {of} is not finite at the weight {variable.path!r} of {name}",
        )
    lost = [
        variable.path
        for variable, gradient in zip(variables, gradients, strict=True)
        if not np.abs(gradient).max(initial=0.0) > 0
    ]
    expect(
        not lost,
        f"No gradient of {of} reaches these weights of {name}: {lost}. Use them in what is "
        "returned, or make them `trainable=False`",
    )
