"""Shared by all tests: the backend under test, reference numbers, TensorFlow hidden on request."""

import os
import pathlib
import signal
import sys
import warnings

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Tests compile much and run little: XLA's slow optimisations do not pay on two cores.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true",
)
# Started in the background by a shell, Python ignores the Ctrl-C that some tests send.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
REFERENCE = pathlib.Path(__file__).parent / "reference"


if os.environ.get("KERAS_ELF_HIDE_TENSORFLOW") == "1":
    # `None` makes an import fail as it does where the package was never installed.
    for name in ("tensorflow", "tensorflow_text", "tf2onnx"):
        sys.modules[name] = None

# The run without TensorFlow compiles the same programs as the JAX run before it.
CACHE = pathlib.Path(__file__).parent.parent / "build" / "jax-cache"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")

import keras  # noqa: E402
import numpy as np  # noqa: E402

if keras.backend.backend() == "torch":
    import torch

    torch.set_flush_denormal(True)
    # Tiny tensors: waiting for a second thread costs more than it computes.
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def reference():
    """`reference("jax/forward")` -> dict of arrays printed by the public ELF code."""

    def load(name):
        with np.load(REFERENCE / f"{name}.npz", allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}

    return load


@pytest.fixture(autouse=True)
def _float32_policy():
    """No test may leave its dtype policy behind for the next one."""
    keras.config.set_dtype_policy("float32")
    yield
    keras.config.set_dtype_policy("float32")


@pytest.fixture(autouse=True)
def _quiet_t5():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*does not support masking.*")
        yield
