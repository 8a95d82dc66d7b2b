"""Peak memory of one variant of a case, in a process of its own.

Two figures, both from the operating system (`/proc/self/status`), after two calls have compiled
and warmed up and the heap was trimmed:

- `peak_bytes`: highest resident size (VmHWM) during two more calls, above the resident size
  (VmRSS) once everything was imported and the model built. It holds what stays (gradients,
  optimizer state, compiled code) and what a call needs for a while.
- `call_bytes`: the same peak above the resident size just before those two calls: what a call
  needs for a while, above all activations.

On a GPU `peak_bytes` is the allocator's own peak since the process began, weights included:
`torch.cuda.max_memory_allocated`, or `peak_bytes_in_use` of JAX; `call_bytes` is `None`.
"""

import ctypes
import gc
import json
import os
import pathlib
import subprocess
import sys


def measure(make):
    """Both figures for the function that `make()` returns."""
    from benchmarks.timing import synchronise

    function = make()
    start = resident("VmRSS")
    for _ in range(2):
        synchronise(function())
    gc.collect()
    _trim()
    before = resident("VmRSS")
    _reset_peak()
    for _ in range(2):
        synchronise(function())
    peak = resident("VmHWM")
    on_device = device_peak()
    if on_device is not None:
        return {"peak_bytes": on_device, "call_bytes": None}
    return {"peak_bytes": peak - start, "call_bytes": peak - before}


def of_variant(settings, case, variant):
    """The figures of one variant, measured in a child process.

    Args:
        settings: `benchmarks.cases.Settings`.
        case, variant: str. Names.
    """
    arguments = json.dumps([settings.as_dict(), case, variant])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", arguments], capture_output=True, text=True
    )
    if done.returncode:
        sys.stderr.write(done.stderr)
        raise SystemExit(f"The child that measured the memory of {case}: {variant} failed.")
    return json.loads(done.stdout.splitlines()[-1])


def resident(field):
    """Bytes of a field of `/proc/self/status`: VmRSS (now) or VmHWM (highest)."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {field}")


def device_peak():
    """Highest number of bytes in use on the GPU since the process began, `None` without one."""
    import keras

    if keras.backend.backend() == "torch":
        import torch

        return torch.cuda.max_memory_allocated() if torch.cuda.is_available() else None
    if keras.backend.backend() == "jax":
        import jax

        device = jax.devices()[0]
        return None if device.platform == "cpu" else device.memory_stats()["peak_bytes_in_use"]
    return None


def _trim():
    # What the compiler has freed would else be taken for memory in use.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _reset_peak():
    pathlib.Path("/proc/self/clear_refs").write_text("5")


def main():
    from benchmarks import cases

    settings, case, variant = json.loads(sys.argv[1])
    settings = cases.Settings(**settings)
    cases.prepare_backend()
    variants = cases.CASES[case].variants(settings)
    print(json.dumps(measure(variants[variant].make)))


if __name__ == "__main__":
    os.environ.setdefault("KERAS_BACKEND", "jax")
    main()
