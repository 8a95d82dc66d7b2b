"""Parts that know their own settings: saved, loaded and told apart without extra code."""

import copy
import inspect

import keras
import numpy as np

_NO_VALUE = inspect.Parameter.empty
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Configurable:
    """Base of samplers, guidances and the parts of an objective.

    It records the arguments of the constructor, so that a subclass needs neither `get_config`
    nor `from_config`. An argument that became an attribute of the same name is read from
    there. Arguments that are themselves Configurable are saved along.

    Example:

    ```python
    @keras.saving.register_keras_serializable(package="my_package")
    class Damped(keras_elf.samplers.ODESampler):
        def __init__(self, damping=0.5, **kwargs):
            super().__init__(**kwargs)
            self.damping = damping
    ```
    """

    def __new__(cls, *args, **kwargs):
        instance = super().__new__(cls)
        try:
            bound = inspect.signature(cls.__init__).bind(instance, *args, **kwargs)
        except TypeError:
            return instance  # The constructor itself says what is wrong.
        recorded = {}
        for name, value in list(bound.arguments.items())[1:]:
            kind = bound.signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_KEYWORD:
                recorded.update(value)
            elif kind is not inspect.Parameter.VAR_POSITIONAL:
                recorded[name] = value
        instance._recorded_arguments = recorded
        return instance

    def get_config(self):
        """dict of the constructor's arguments with their present values."""
        config = {}
        for name, default in _constructor_arguments(type(self)).items():
            value = getattr(self, name, self._recorded_arguments.get(name, default))
            if value is not _NO_VALUE:
                config[name] = value
        return config

    @classmethod
    def from_config(cls, config):
        """A new object from what `get_config` returned, serialised or not."""
        return cls(**{name: _deserialized(value) for name, value in config.items()})

    def __repr__(self):
        settings = ", ".join(f"{name}={value!r}" for name, value in self.get_config().items())
        return f"{type(self).__name__}({settings})"


def signature(value):
    """A hashable that differs wherever two values could compute something different.

    Compiled functions are kept under it. A Configurable is described by its class, its config
    and all its attributes; functions and other objects stand for themselves.
    """
    if isinstance(value, Configurable):
        attributes = {k: v for k, v in vars(value).items() if k != "_recorded_arguments"}
        return type(value), signature(value.get_config()), signature(attributes)
    if isinstance(value, dict):
        return "dict", tuple(sorted((str(k), signature(v)) for k, v in value.items()))
    if isinstance(value, (list, tuple)):
        return type(value), tuple(signature(item) for item in value)
    if isinstance(value, np.ndarray):
        return "array", value.shape, str(value.dtype), value.tobytes()
    if value is None or isinstance(value, (bool, int, float, str, bytes, np.generic)):
        return type(value), value
    return _Same(value)


def snapshot(value):
    """A copy of a Configurable that later changes of the original do not reach.

    Its attributes are copied, with the lists, dicts and arrays in them; layers, functions and
    other objects are shared.
    """
    copied = copy.copy(value)
    vars(copied).update({name: _copied(item) for name, item in vars(value).items()})
    return copied


def _copied(value):
    if isinstance(value, dict):
        return {name: _copied(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_copied(item) for item in value)
    if isinstance(value, np.ndarray):
        return value.copy()
    return snapshot(value) if isinstance(value, Configurable) else value


class _Same:
    """Equal to another only where both stand for one object, which it keeps alive."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self):
        return id(self.value)

    def __lt__(self, other):
        return False  # Only asked between entries of one name, which a dict has once.


def _constructor_arguments(cls):
    """Names and defaults of what the constructor takes, those behind `**kwargs` included."""
    found = {}
    for base in cls.__mro__:
        if "__init__" not in vars(base) or base is object:
            continue
        parameters = inspect.signature(base.__init__).parameters.values()
        for parameter in list(parameters)[1:]:
            if parameter.kind in _NAMED:
                found.setdefault(parameter.name, parameter.default)
        if all(p.kind is not inspect.Parameter.VAR_KEYWORD for p in parameters):
            break
    return found


def _deserialized(value):
    if isinstance(value, dict) and "class_name" in value:
        return keras.saving.deserialize_keras_object(value)
    if isinstance(value, list):
        return [_deserialized(item) for item in value]
    return value
