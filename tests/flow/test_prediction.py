"""Whatever the network is taken to predict, a perfect one gives the clean latents."""

import numpy as np
import pytest
from keras import ops

from keras_elf import flow

CLEAN, NOISE = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype("float32")
T = np.float32([0.1, 0.5, 0.9])


@pytest.mark.parametrize("prediction", flow.PREDICTIONS)
def test_perfect_prediction_gives_clean_latents(prediction):
    z = flow.interpolate(CLEAN, NOISE, T, noise_scale=3.0)
    output = {"x": CLEAN, "v": flow.velocity(CLEAN, z, T), "epsilon": NOISE}[prediction]
    clean = flow.predicted_clean(output, z, T, prediction, noise_scale=3.0)
    np.testing.assert_allclose(ops.convert_to_numpy(clean), CLEAN, rtol=1e-4, atol=1e-4)


def test_unknown_prediction_is_refused():
    with pytest.raises(ValueError, match="Did you mean 'epsilon'"):
        flow.predicted_clean(CLEAN, CLEAN, T, "epsilo")
