"""What the figures were measured on: the machine, the versions, its matmul rate."""

import datetime
import importlib.metadata
import os
import pathlib
import platform
import re
import statistics
import time

LARGEST_SIDE = 8192


def describe():
    """dict of what tells machines apart, without any name that somebody gave to one."""
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "gpu": gpu(),
        "system": f"{platform.system()} {platform.machine()}",
        "load": [round(x, 2) for x in os.getloadavg()],
    }


def label(machine):
    """A short name for a machine, for names of files: its GPU or its number of cores."""
    if machine["gpu"]:
        return re.sub(r"[^a-z0-9]+", "-", machine["gpu"].lower()).strip("-")
    return f"cpu{machine['cores']}"


def versions():
    """dict of the versions that figures depend on."""
    found = {"python": platform.python_version()}
    for name in ("keras", "keras-hub", "keras-elf", "numpy", "jax", "tensorflow", "torch"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def now():
    """Date and time in UTC, to the minute."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%MZ")


def gpu():
    """Name of the GPU that the backend computes on, or `None`."""
    import keras

    if keras.backend.backend() == "torch":
        import torch

        return torch.cuda.get_device_name() if torch.cuda.is_available() else None
    if keras.backend.backend() == "jax":
        import jax

        device = jax.devices()[0]
        return None if device.platform == "cpu" else device.device_kind
    import tensorflow as tf

    found = tf.config.list_physical_devices("GPU")
    return tf.config.experimental.get_device_details(found[0]).get("device_name") if found else None


def matmul_rate(dtype="float32", repeats=5, least_s=0.05):
    """Operations a second of a square matrix product, through `keras.ops`.

    The side is doubled until a product takes `least_s`, up to 8192; the median of `repeats`
    products counts.

    Args:
        dtype: of the factors.
        repeats: int. Products timed.
        least_s: float. Seconds of a product.

    Returns:
        dict of `flops_per_s`, `side` and `dtype`.
    """
    import keras
    import numpy as np

    from benchmarks.timing import synchronise
    from keras_elf.models import compiled

    product = compiled(keras.ops.matmul, [])
    rng, side, seconds = np.random.default_rng(0), 256, 0.0
    while seconds < least_s and side < LARGEST_SIDE:
        side *= 2
        a, b = (
            keras.ops.convert_to_tensor(rng.standard_normal((side, side), "float32"), dtype)
            for _ in range(2)
        )
        synchronise(product(a, b))  # compiles
        seconds = _seconds(lambda a=a, b=b: synchronise(product(a, b)))
    seconds = statistics.median(
        _seconds(lambda: synchronise(product(a, b))) for _ in range(repeats)
    )
    return {"flops_per_s": 2 * side**3 / seconds, "side": side, "dtype": dtype}


def _seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _cpu():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()
