"""The toy network of the reference numbers, and its weights in our layout."""

import json
import pathlib

import numpy as np

from keras_elf.checkpoints import to_variables
from keras_elf.models.backbone import ELFBackbone

CONFIG = json.loads((pathlib.Path(__file__).parent / "reference/jax/model_config.json").read_text())


def toy_backbone(arrays=None, **overrides):
    """An `ELFBackbone` of the reference's size, holding `arrays` (released names)."""
    backbone = ELFBackbone(
        **{
            "vocabulary_size": CONFIG["vocab_size"],
            "latent_dim": CONFIG["text_encoder_dim"],
            "depth": CONFIG["depth"],
            "hidden_size": CONFIG["hidden_size"],
            "num_heads": CONFIG["num_heads"],
            "bottleneck_dim": CONFIG["bottleneck_dim"],
            **overrides,
        }
    )
    if arrays is not None:
        assign(backbone, arrays)
    return backbone


def assign(backbone, arrays):
    """Write released arrays into the backbone; every variable must be named exactly once."""
    ours = to_variables({k.removeprefix("params/"): v for k, v in arrays.items()})
    variables = {v.path.removeprefix("elf_backbone/"): v for v in backbone.variables}
    assert set(ours) == set(variables), set(ours) ^ set(variables)
    for path, variable in variables.items():
        variable.assign(ours[path])


def largest_error(actual, expected):
    """Largest absolute difference, in units of the largest expected entry."""
    actual, expected = np.asarray(actual, "float64"), np.asarray(expected, "float64")
    return np.abs(actual - expected).max() / max(np.abs(expected).max(), 1e-30)
