"""Wrong constructor arguments are refused where they are written, by name."""

import pytest

from keras_elf import layers


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("ELFAttention", {"num_heads": 3}, "must divide `hidden_size`.*num_heads=3"),
        ("ELFAttention", {"hidden_size": 6}, "even.*6 / 2 = 3"),
        ("ELFAttention", {"dropout": 1.5}, r"`dropout`.*\[0, 1\].*1.5"),
        ("ELFAttention", {"attention_dropout": float("nan")}, "`attention_dropout`.*nan"),
        ("ELFBlock", {"hidden_size": "8"}, "`hidden_size`.*'8'"),
        ("ELFBlock", {"num_heads": 0}, "`num_heads`.*0"),
        ("ELFBlock", {"mlp_ratio": -1.0}, "`mlp_ratio`.*-1.0"),
        ("ELFBlock", {"mlp_ratio": 0.1}, "hidden_size \\* mlp_ratio.*0"),
        ("BottleneckTextProj", {"bottleneck_dim": 0}, "`bottleneck_dim`.*0"),
        ("DenoisingHead", {"latent_dim": 2.5}, "`latent_dim`.*2.5"),
        ("SelfConditioningProj", {"latent_dim": True}, "`latent_dim`.*True"),
        ("RotaryEmbedding", {"theta": float("inf")}, "`theta`.*inf"),
        ("TimestepEmbedding", {"num_features": 7}, "`num_features`.*7"),
    ],
)
def test_refused_by_name(name, arguments, message):
    required = {
        "ELFAttention": {"hidden_size": 8, "num_heads": 2},
        "ELFBlock": {"hidden_size": 8, "num_heads": 2},
        "BottleneckTextProj": {"hidden_size": 8},
        "TimestepEmbedding": {"hidden_size": 8},
    }.get(name, {})
    with pytest.raises(ValueError, match=message):
        getattr(layers, name)(**{**required, **arguments})
