"""Timing in turns, that waits for the device and keeps the first call apart."""

import math
import statistics
import time

LEAST_SECONDS = 0.02


def synchronise(result=None):
    """Wait until `result`, a nest of tensors, has been computed."""
    import keras

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


class Stopwatch:
    """Seconds of one call of a function.

    Once settled it repeats short functions within a measurement, so that the clock's own
    error stays small.

    Args:
        function: callable without arguments, whose result is waited for.
    """

    def __init__(self, function):
        self.function, self.calls = function, 1

    def __call__(self):
        start = time.perf_counter()
        for _ in range(self.calls):
            result = self.function()
        synchronise(result)
        return (time.perf_counter() - start) / self.calls

    def settle(self):
        """Warm up, and choose how often to call the function in one measurement."""
        self.calls = min(1000, math.ceil(LEAST_SECONDS / max(self(), 1e-9)))


def compare(measures, repeats):
    """Measure several things in turns, so that a busy moment hits all of them alike.

    Every round takes all of them once, every second round in the opposite order. The ratio of
    two things is taken within each round, and the median over rounds is reported.

    Args:
        measures: dict of name -> callable that returns seconds, such as a `Stopwatch`. The
            first one is what the others are compared to.
        repeats: int. Rounds after the first call, which compiles and is reported apart, and
            after one round to warm up.

    Returns:
        dict of name -> dict of `first_s` (the first call), `time_s` and `ratio` (time over the
        time of the first one in the same round), the latter two as `spread` gives them.
    """
    first = {name: measure() for name, measure in measures.items()}
    for measure in measures.values():
        settle = getattr(measure, "settle", measure)
        settle()
    rounds = []
    for i in range(repeats):
        order = list(measures)[:: 1 if i % 2 == 0 else -1]
        rounds.append({name: measures[name]() for name in order})
    base = next(iter(measures))
    return {
        name: {
            "first_s": first[name],
            "time_s": spread([r[name] for r in rounds]),
            "ratio": spread([r[name] / r[base] for r in rounds]),
        }
        for name in measures
    }


def spread(values):
    """dict of `median`, `min`, `max`, the quartiles `q1` and `q3`, and the number `n`."""
    values = sorted(values)
    q1, _, q3 = statistics.quantiles(values, n=4, method="inclusive") if values[1:] else values * 3
    return {
        "median": statistics.median(values),
        "q1": q1,
        "q3": q3,
        "min": values[0],
        "max": values[-1],
        "n": len(values),
    }
