"""Released names find their variables in both spellings."""

import numpy as np
import pytest

from keras_elf.checkpoints.names import is_transposed, to_variables, variable_path

pytestmark = pytest.mark.backend_free

# Ours, flax, torch.
NAMES = [
    ("self_cond_proj/proj/kernel", "self_cond_proj/kernel", "self_cond_proj.weight"),
    ("text_proj/proj1/kernel", "text_proj/proj1/kernel", "text_proj.proj1.weight"),
    ("text_proj/proj2/bias", "text_proj/proj2/bias", "text_proj.proj2.bias"),
    ("context_prefix/time_tokens", "t_emb_tokens", "t_emb_tokens"),
    (
        "context_prefix/time_embedding/mlp_0/kernel",
        "t_embedder/mlp_0/kernel",
        "t_embedder.mlp_0.weight",
    ),
    ("context_prefix/guidance_tokens", "self_cond_cfg_tokens", "self_cond_cfg_tokens"),
    (
        "context_prefix/guidance_embedding/mlp_2/bias",
        "self_cond_cfg_embedder/mlp_2/bias",
        "self_cond_cfg_embedder.mlp_2.bias",
    ),
    ("context_prefix/mode_tokens", "mode_tokens", "mode_tokens"),
    ("blocks_0/norm1/scale", "blocks_0/norm1/weight", "blocks.0.norm1.weight"),
    ("blocks_11/attn/qkv/kernel", "blocks_11/attn/qkv/kernel", "blocks.11.attn.qkv.weight"),
    ("blocks_11/attn/q_norm/scale", "blocks_11/attn/q_norm/weight", "blocks.11.attn.q_norm.weight"),
    ("blocks_3/mlp/w12/bias", "blocks_3/mlp/w12/bias", "blocks.3.mlp.w12.bias"),
    ("unembedding/proj/kernel", "proj_kernel", "proj_kernel"),
    ("unembedding/unembed/bias", "unembed_bias", "unembed_bias"),
    ("denoising_head/norm/scale", "final_layer/norm_final/weight", "final_layer.norm_final.weight"),
    ("denoising_head/linear/kernel", "final_layer/linear/kernel", "final_layer.linear.weight"),
]


@pytest.mark.parametrize(("ours", "flax", "torch"), NAMES)
def test_both_spellings_name_one_variable(ours, flax, torch):
    assert variable_path(flax) == variable_path(torch) == ours


@pytest.mark.parametrize(
    ("name", "transposed"),
    [
        ("blocks.0.attn.qkv.weight", True),
        ("text_proj.proj1.weight", True),
        # Square, so that a shape could not tell.
        ("blocks.0.attn.proj.weight", True),
        ("t_embedder.mlp_2.weight", True),
        ("blocks.0.norm1.weight", False),
        ("blocks.0.attn.k_norm.weight", False),
        ("final_layer.norm_final.weight", False),
        ("blocks.0.attn.qkv.bias", False),
        # The public code keeps these matrices as plain parameters, (in, out).
        ("unembed_kernel", False),
        ("proj_kernel", False),
        ("t_emb_tokens", False),
        ("blocks_0/attn/qkv/kernel", False),
    ],
)
def test_only_torch_dense_kernels_are_transposed(name, transposed):
    assert is_transposed(name) is transposed


def test_both_releases_hold_the_same_variables(reference):
    """Same paths and, once transposed, same shapes."""
    flax = to_variables({k.removeprefix("params/"): v for k, v in reference("jax/weights").items()})
    torch = to_variables(reference("torch/pd_teacher_weights"))
    assert {k: v.shape for k, v in flax.items()} == {k: v.shape for k, v in torch.items()}
    assert len(flax) == len(reference("jax/weights"))


def test_values_are_kept():
    kernel = np.arange(6.0).reshape(2, 3)
    arrays = {"blocks.0.mlp.w3.weight": kernel, "blocks.0.mlp.w3.bias": kernel[0]}
    out = to_variables(arrays)
    np.testing.assert_array_equal(out["blocks_0/mlp/w3/kernel"], kernel.T)
    np.testing.assert_array_equal(out["blocks_0/mlp/w3/bias"], kernel[0])
