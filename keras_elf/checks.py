"""Argument checks whose messages name the argument, what came and what is allowed.

Every public entry point uses these, so that a wrong value is refused where the user
wrote it and never surfaces as a NaN or as a stack trace from inside a compiler.
"""

import difflib
import math
import numbers


def integer(name, value, minimum=None, maximum=None):
    """Return `value` as an `int`; raise `ValueError` if it is not a whole number in range."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise ValueError(
            f"`{name}` must be a whole number{_range(minimum, maximum)}. Received: {value!r}"
        )
    return int(_in_range(name, value, minimum, maximum, "a whole number"))


def number(name, value, minimum=None, maximum=None):
    """Return `value` as a `float`; raise `ValueError` if it is not finite or out of range."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise ValueError(
            f"`{name}` must be a finite number{_range(minimum, maximum)}. Received: {value!r}"
        )
    return float(_in_range(name, value, minimum, maximum, "a finite number"))


def probability(name, value):
    """Return `value` as a `float` in [0, 1]; raise `ValueError` otherwise."""
    return number(name, value, minimum=0, maximum=1)


def choice(name, value, allowed):
    """Return `value` if it is one of `allowed`; raise `ValueError` that names the nearest."""
    allowed = list(allowed)
    if value not in allowed:
        near = difflib.get_close_matches(str(value), [str(a) for a in allowed], n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"`{name}` must be one of {allowed}. Received: {value!r}.{hint}")
    return value


def is_unicode(text):
    """Whether a str can be written as UTF-8: lone surrogates cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def no_unknown(owner, kwargs, allowed=()):
    """Raise `TypeError` if `kwargs` holds a name outside `allowed` (Keras swallows some)."""
    unknown = sorted(set(kwargs) - set(allowed))
    if unknown:
        raise TypeError(
            f"{owner} got unknown arguments {unknown}. Allowed besides: {sorted(allowed)}"
        )


def _in_range(name, value, minimum, maximum, kind):
    if (minimum is not None and value < minimum) or (maximum is not None and value > maximum):
        raise ValueError(f"`{name}` must be {kind}{_range(minimum, maximum)}. Received: {value!r}")
    return value


def _range(minimum, maximum):
    if minimum is not None and maximum is not None:
        return f" in [{minimum}, {maximum}]"
    if minimum is not None:
        return f" >= {minimum}"
    return f" <= {maximum}" if maximum is not None else ""
