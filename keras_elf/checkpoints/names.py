"""Names of the released weights and the variables of `ELFBackbone` they belong to."""

import re

import numpy as np

# Released module path (flax spelling) -> path of our layer or variable.
_PREFIXES = {
    "self_cond_proj/": "self_cond_proj/proj/",
    "t_embedder/": "context_prefix/time_embedding/",
    "self_cond_cfg_embedder/": "context_prefix/guidance_embedding/",
    "t_emb_tokens": "context_prefix/time_tokens",
    "self_cond_cfg_tokens": "context_prefix/guidance_tokens",
    "mode_tokens": "context_prefix/mode_tokens",
    "proj_": "unembedding/proj/",
    "unembed_": "unembedding/unembed/",
    "final_layer/norm_final/": "denoising_head/norm/",
    "final_layer/linear/": "denoising_head/linear/",
}
_NORM = re.compile(r"norm\w*/weight$")


def variable_path(name):
    """Path of the `ELFBackbone` variable for a released name in flax or torch spelling.

    `blocks.0.attn.qkv.weight` and `blocks_0/attn/qkv/kernel` both give
    `blocks_0/attn/qkv/kernel`.
    """
    path = re.sub(r"\bblocks/(\d+)/", r"blocks_\1/", name.replace(".", "/"))
    for released, ours in _PREFIXES.items():
        if path.startswith(released):
            path = ours + path[len(released) :]
            break
    if _NORM.search(path):
        return path[: -len("weight")] + "scale"
    return re.sub(r"/weight$", "/kernel", path)


def is_transposed(name):
    """Whether a torch name holds a `(out, in)` matrix where ours is `(in, out)`."""
    return name.endswith(".weight") and variable_path(name).endswith("/kernel")


def to_variables(arrays):
    """Released arrays by released names -> arrays in our layout by variable path."""
    return {
        variable_path(name): np.asarray(array).T if is_transposed(name) else np.asarray(array)
        for name, array in arrays.items()
    }
