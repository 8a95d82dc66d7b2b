"""Blocks that are computed again for their gradient instead of kept."""

import functools

import keras


def rematerialized(function):
    """`function` whose gradient computes it again instead of keeping what it made.

    PyTorch ends the second computation by an exception as soon as it has what it needs. Keras
    would catch it in each layer to tell more about it, and each exception that it makes refers
    to itself: whatever the layer held would stay in memory until Python looks for such cycles.
    """
    if keras.backend.backend() == "torch":
        function = _with_plain_exceptions(function)
    return keras.remat(function)


def _with_plain_exceptions(function):
    @functools.wraps(function)
    def run(*args, **kwargs):
        filtering = keras.config.is_traceback_filtering_enabled()
        keras.config.disable_traceback_filtering()
        try:
            return function(*args, **kwargs)
        finally:
            if filtering:
                keras.config.enable_traceback_filtering()

    return run
