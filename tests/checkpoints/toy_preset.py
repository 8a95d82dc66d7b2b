"""A published model of toy size, whose released files are the reference checkpoints."""

import json
import pathlib
import shutil

from keras_elf.presets import bundled
from tests.checkpoints.tiny_t5 import write_tiny_t5
from tests.reference_model import CONFIG

NAME, WEIGHTS, ENCODER = "elf_toy_owt", "authors/ELF-toy-torch", "authors/t5-toy"
CHECKPOINT = pathlib.Path(__file__).parents[1] / "reference/torch/torch_checkpoint/checkpoint_3"
_SIZES = {
    "vocabulary_size": CONFIG["vocab_size"],
    "latent_dim": CONFIG["text_encoder_dim"],
    "depth": CONFIG["depth"],
    "hidden_size": CONFIG["hidden_size"],
    "num_heads": CONFIG["num_heads"],
    "bottleneck_dim": CONFIG["bottleneck_dim"],
}
_ENCODER = {
    "vocabulary_size": 40,
    "num_layers": 1,
    "num_heads": 2,
    "latent_dim": 16,
    "intermediate_dim": 8,
    "key_value_dim": 8,
}


def write_toy_preset(directory):
    """`elf_b_owt`'s files with the toy's sizes and repositories."""
    shutil.copytree(bundled.directory("elf_b_owt"), directory)
    rows = {"vocabulary_size": CONFIG["vocab_size"], "sequence_length": 12}
    _update(directory / "config.json", config=_SIZES)
    _update(directory / "preprocessor.json", config=rows)
    _update(
        directory / "task.json",
        config={"sequence_length": 12, "num_steps": 2},
        backbone=_SIZES,
        encoder=_ENCODER,
        preprocessor=rows,
    )
    facts = json.loads((directory / "preset.json").read_text())
    facts.update(parameters=72269, weights=WEIGHTS, encoder=ENCODER)
    (directory / "preset.json").write_text(json.dumps(facts))


def _update(path, config, **parts):
    content = json.loads(path.read_text())
    content["config"].update(config)
    for name, values in parts.items():
        content["config"][name]["config"].update(values)
    path.write_text(json.dumps(content))


def served_files(directory):
    """What the hub holds: the toy checkpoint, an older one, and a T5 with its tokenizer."""
    t5 = write_tiny_t5(directory / "t5")
    return {
        WEIGHTS: {
            "README.md": b"toy",
            "checkpoint_2": b"an older one",
            "checkpoint_3": CHECKPOINT.read_bytes(),
        },
        ENCODER: {path.name: path.read_bytes() for path in t5.iterdir()},
    }
