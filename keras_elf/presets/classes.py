"""Which class a serialised part of a preset stands for, and whether it may."""

import importlib
import inspect

import keras


def is_known(serialized):
    """Whether a serialised object names a class that Keras or somebody here registered."""
    registered = serialized.get("registered_name") or serialized["class_name"]
    if serialized["class_name"] == "function":
        registered = serialized.get("config")  # Keras writes the name of a function there.
        return isinstance(registered, str) and inspect.isfunction(
            keras.saving.get_registered_object(registered)
        )
    if not isinstance(registered, str):
        return False
    module = str(serialized.get("module"))
    if keras.saving.get_registered_object(registered) is None and registered[:10] == "keras_elf>":
        # A part of this library that nobody has asked for yet.
        _import_own(module)
    if keras.saving.get_registered_object(registered) is not None:
        return True
    # Keras finds its own by module, and refuses those of its functions that do things.
    return module.split(".")[0] == "keras"


def _import_own(module):
    if module.split(".")[0] == "keras_elf":
        try:
            importlib.import_module(module)
        except ImportError:
            pass


def where_to_find(serialized):
    """The end of a message: what to do about a class that nobody has registered."""
    if serialized.get("class_name") == "function":
        return (
            f"Import the module that registers the function {serialized.get('config')!r} first "
            "(keras.saving.register_keras_serializable), if you trust the preset"
        )
    module = serialized.get("module")
    name = serialized.get("class_name")
    if module == "__main__":
        return (
            f"{name} was defined in a script or notebook that ran as '__main__', which cannot be "
            "imported. Define the class again before loading, or move it into a module and save "
            "the preset from there"
        )
    return (
        f"Import the module that registers it first, if you trust the preset: `import {module}`"
        if isinstance(module, str)
        else "Import the module that registers it first, if you trust the preset"
    )


def chosen_class(asked, serialized, file, path):
    """The class to build: the saved one, or the one asked for where that is a subclass of it.

    Args:
        asked: type. The class whose `from_preset` was called.
        serialized: dict. What `file` of the preset `path` holds.

    Raises:
        ValueError: if the two have nothing to do with each other.
    """
    registered = serialized.get("registered_name")
    saved = keras.saving.get_registered_object(registered) if registered else None
    if inspect.isclass(saved):
        if issubclass(saved, asked):
            return saved
        if issubclass(asked, saved):
            return asked
    raise ValueError(
        f"{file} in preset {path!r} holds {registered!r}, expected {asked.__name__} or a relative. "
        "Call `from_preset` of the class that was saved, or of a class above it"
    )


def check_network(serialized, file, path):
    """Raise `ValueError` unless a serialised class can be a network of ELF."""
    registered = serialized.get("registered_name")
    saved = keras.saving.get_registered_object(registered) if registered else None
    if not inspect.isclass(saved) or not callable(getattr(saved, "hidden_states", None)):
        raise ValueError(
            f"{file} in preset {path!r} holds {registered!r}, expected a network: a registered "
            "class with the method `hidden_states`"
        )


def argument_names(cls):
    """Names that the constructor of a class takes, those of its bases where it passes them on."""
    names = set()
    for base in cls.__mro__:
        if "__init__" not in vars(base):
            continue
        parameters = inspect.signature(base.__init__).parameters.values()
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        names |= {p.name for p in parameters if p.kind in kinds}
        if base.__module__.split(".")[0] in ("keras", "keras_hub"):
            break
        if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
            break
    return names - {"self"}
