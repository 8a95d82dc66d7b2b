"""Weights saved on this backend, loaded on the others: the same numbers."""

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.models import fresh_process, small

OTHERS = [name for name in ("jax", "tensorflow", "torch") if name != small.BACKEND]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    model = small.enliven(small.generator(tied=True))
    folder = tmp_path_factory.mktemp("cross")
    model.save_to_preset(folder / "preset")
    return folder, fresh_process.numbers(model)


@pytest.mark.slow
@pytest.mark.parametrize("backend", OTHERS)
def test_same_numbers(saved, backend):
    hidden = backend in sys.modules and sys.modules[backend] is None
    if hidden or importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not there")
    folder, expected = saved
    out = folder / f"{backend}.npz"
    command = [sys.executable, "-m", "tests.models.fresh_process", "numbers"]
    done = subprocess.run(
        [*command, str(folder / "preset"), str(out)],
        capture_output=True,
        text=True,
        env={**os.environ, "KERAS_BACKEND": backend},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    with np.load(out) as found:
        assert set(found) == set(expected)
        for name, value in expected.items():
            assert np.abs(value).max() > 0.1
            np.testing.assert_allclose(found[name], value, atol=1e-4, err_msg=name)
