"""Whole sampling runs against the public code: same noise, same latents, same tokens."""

import numpy as np
import pytest
from keras import ops

from keras_elf.samplers import ODESampler, SamplingConfig, SamplingEngine, SDESampler
from tests.reference_model import largest_error, toy_backbone

CASES = [
    "ode_uncond",
    "ode_uniform",
    "ode_cond_cfg2",
    "sde_uncond",
    "sde_uncond_gamma0",
    "sde_cond_cfg2",
]


@pytest.fixture(scope="module")
def engine(reference):
    return SamplingEngine(toy_backbone(reference("jax/weights")))


class RecordedNoise:
    def __init__(self, ref):
        self.first = ref["z0"] / 2.0
        self.eps = ref["eps"]

    def initial(self, samples, shape):
        return self.first

    def step(self, step, samples, shape):
        # The last interval takes no noise, so none was recorded for it.
        return self.eps[step] if step < len(self.eps) else np.full_like(self.first, 7.0)


@pytest.mark.parametrize("case", CASES)
def test_run_equals_public_code(reference, engine, case):
    ref = reference(f"jax/sampler_{case}")
    ode = str(ref["method"]) == "ode"
    config = SamplingConfig(
        sampler=ODESampler() if ode else SDESampler(gamma=float(ref["gamma"])),
        guidance_scale=float(ref["cfg_scale"]),
        self_cond_guidance_scale=float(ref["self_cond_cfg_scale"]),
    )
    z = engine.run(
        config,
        range(4),
        12,
        RecordedNoise(ref),
        ref["t_steps"],
        ref.get("cond_seq"),
        ref["cond_seq_mask"] > 0 if "cond_seq_mask" in ref else None,
    )
    assert largest_error(ops.convert_to_numpy(z), ref["z_final"]) < 2e-4
    np.testing.assert_array_equal(engine.decode(config, z, range(4)), ref["token_ids"])
