"""Parts of an objective, given as objects or as numbers in short form."""

import inspect


def part(objective, name, given, default, short_form):
    """The part `name` of an objective.

    Args:
        objective: what holds the numbers of the short form as attributes.
        name: string. Name of the argument.
        given: the part, or `None` to make it from the short form.
        default: class that the short form makes, from the numbers in their order.
        short_form: tuple of names of the numbers.

    Raises:
        ValueError: if `given` is no such part, or comes with numbers of the short form.
    """
    base = default.__mro__[1]
    if given is None:
        return default(*(getattr(objective, number) for number in short_form))
    if not isinstance(given, base):
        raise ValueError(f"`{name}` must be a {base.__name__}. Received: {given!r}")
    defaults = inspect.signature(type(objective).__init__).parameters
    for number in short_form:
        if number in defaults and getattr(objective, number) != defaults[number].default:
            raise ValueError(
                f"`{number}` says nothing beside `{name}`, which replaces it: give one of the two. "
                f"Received: {number}={getattr(objective, number)}, {name}={given!r}"
            )
    return given
