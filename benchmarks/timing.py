"""Timing that waits for the device and keeps compilation apart."""

import statistics
import time

import keras


def synchronise(result):
    """Wait until `result`, a nest of tensors, has been computed."""
    backend = keras.backend.backend()
    if backend == "jax":
        import jax

        jax.block_until_ready(result)
    elif backend == "torch":
        import torch

        if torch.cuda.is_available():
            torch.cuda.synchronize()
    else:
        keras.tree.map_structure(keras.ops.convert_to_numpy, result)


def _seconds(function):
    start = time.perf_counter()
    synchronise(function())
    return time.perf_counter() - start


def compare(functions, repeats):
    """Time several functions in turns, so that a busy moment hits all of them alike.

    Args:
        functions: dict of name -> callable without arguments.
        repeats: int. Rounds after the first, which compiles and is reported apart.

    Returns:
        dict of name -> dict of `first_s`, `median_s`, `min_s`, `max_s` in seconds.
    """
    first = {name: _seconds(function) for name, function in functions.items()}
    times = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            times[name].append(_seconds(function))
    return {
        name: {
            "first_s": first[name],
            "median_s": statistics.median(values),
            "min_s": min(values),
            "max_s": max(values),
        }
        for name, values in times.items()
    }
