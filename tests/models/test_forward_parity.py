"""Forward passes of the whole network against the public code's numbers."""

import keras
import numpy as np
import pytest
from keras import ops

from tests.reference_model import toy_backbone

TOLERANCE = 2e-5


@pytest.fixture(scope="module")
def backbone(reference):
    return toy_backbone(reference("jax/weights"))


def _hidden(backbone, ref, **kwargs):
    return backbone.hidden_states(ops.convert_to_tensor(ref["z"]), ref["t"], **kwargs)


def _close(actual, expected):
    np.testing.assert_allclose(ops.convert_to_numpy(actual), expected, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize(
    "case",
    ["denoise", "decode", "denoise_gate_false", "masked", "no_self_cond_input", "no_cfg_tokens"],
)
def test_forward_equals_public_jax_code(backbone, reference, case):
    ref = reference("jax/forward")
    kwargs = {
        "self_condition": ops.convert_to_tensor(ref["x_pred_prev"]),
        "guidance_scale": ref["self_cond_cfg_scale"],
        "decode": 1.0 if case in ("decode", "masked") else 0.0,
    }
    if case == "masked":
        kwargs["attention_mask"] = ref["attention_mask"] > 0
    if case == "no_self_cond_input":
        kwargs["self_condition"] = None
    if case == "no_cfg_tokens":
        kwargs["guidance_scale"] = None
    hidden = _hidden(backbone, ref, **kwargs)
    _close(backbone.denoising_head(hidden), ref[f"{case}_x"])
    if f"{case}_logits" in ref:
        _close(backbone.unembedding(hidden), ref[f"{case}_logits"])


def test_decode_mode_equals_public_torch_code(reference):
    # The EMA weights of the public checkpoint are those of the teacher file.
    ref = reference("torch/checkpoint_forward")
    backbone = toy_backbone(reference("torch/pd_teacher_weights"))
    hidden = _hidden(
        backbone,
        ref,
        self_condition=ops.convert_to_tensor(ref["x_pred_prev"]),
        guidance_scale=ref["self_cond_cfg_scale"],
        decode=np.ones(4, "float32"),
    )
    _close(backbone.denoising_head(hidden), ref["ema_x"])
    _close(backbone.unembedding(hidden), ref["ema_logits"])


def test_one_gate_per_row_mixes_both_modes_in_one_batch(backbone, reference):
    ref = reference("jax/forward")
    gate = np.array([1, 0, 0, 1], "float32")
    hidden = _hidden(
        backbone,
        ref,
        self_condition=ops.convert_to_tensor(ref["x_pred_prev"]),
        guidance_scale=ref["self_cond_cfg_scale"],
        decode=gate,
    )
    expected = np.where(gate[:, None, None] > 0, ref["decode_x"], ref["denoise_x"])
    _close(backbone.denoising_head(hidden), expected)


def test_functional_graph_is_the_same_path(backbone, reference):
    ref = reference("jax/forward")
    hidden = backbone(
        {
            "z": ref["z"],
            "self_condition": ref["x_pred_prev"],
            "t": ref["t"],
            "guidance_scale": ref["self_cond_cfg_scale"],
            "decode": np.ones(4, "float32"),
        }
    )
    _close(backbone.unembedding(hidden), ref["decode_logits"])


def test_bfloat16_policy_keeps_stream_and_heads_in_float32(reference):
    ref = reference("jax/forward")
    backbone = toy_backbone(reference("jax/weights"), dtype="mixed_bfloat16")
    hidden = _hidden(
        backbone,
        ref,
        self_condition=ops.convert_to_tensor(ref["x_pred_prev"]),
        guidance_scale=ref["self_cond_cfg_scale"],
    )
    x = backbone.denoising_head(hidden)
    assert keras.backend.standardize_dtype(hidden.dtype) == "float32"
    assert keras.backend.standardize_dtype(x.dtype) == "float32"
    assert keras.backend.standardize_dtype(backbone.unembedding(hidden).dtype) == "float32"
    error = np.abs(ops.convert_to_numpy(x) - ref["denoise_x"]).max()
    assert 0 < error < 0.1 * np.abs(ref["denoise_x"]).max()
