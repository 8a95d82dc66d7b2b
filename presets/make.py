"""Writes the configurations of the published models beside this file.

    KERAS_BACKEND=jax python presets/make.py

Run it after a change of a default, of an argument's name or of a figure below. No weights are
made or allocated. `elf_nano_kjv` is not written here: it is a trained model, made by
`train_elf_nano_kjv.py`.
"""

import json
import pathlib
import sys

import keras
import keras_hub

from keras_elf.encoders import T5Encoder
from keras_elf.models import (
    ELFBackbone,
    ELFGenerator,
    ELFPreprocessor,
    architecture,
    parameter_count,
)
from keras_elf.objectives import ELFObjective
from keras_elf.samplers import ODESampler, SDESampler

# The encoder half of T5-small, whose tokenizer has 32,000 pieces and 100 sentinels.
T5_SMALL = {
    "vocabulary_size": 32128,
    "num_layers": 6,
    "num_heads": 8,
    "latent_dim": 512,
    "intermediate_dim": 2048,
    "key_value_dim": 64,
    "trainable": False,
}
ENCODER_SOURCE = "google-t5/t5-small"
HUB = "embedded-language-flows"

# What the tasks differ in: section 4 to 6 of the paper's settings.
OPEN_WEB_TEXT = {
    "preprocessor": {"sequence_length": 1024},
    "generator": {
        "sampler": SDESampler(1.5),
        "num_steps": 32,
        "self_cond_guidance_scale": 3.0,
        "conditional": False,
    },
    "objective": {"decode_noise_scale": 5.0},
    "recipe": {
        "dataset": f"{HUB}/openwebtext-t5",
        "rows": "documents packed to full rows, an end token between them",
        # 19,000 steps of 512 rows an epoch.
        "num_rows": 9_728_000,
        "warmup_epochs": 0.5,
    },
}
CONDITIONAL = {
    "generator": {
        "sampler": ODESampler(),
        "num_steps": 64,
        "guidance_scale": 2.0,
        "self_cond_guidance_scale": 1.0,
        "label_drop_probability": 0.1,
        "conditional": True,
    },
    "objective": {"decode_noise_scale": 1.0},
    "recipe": {"rows": "condition and target, one pair a row", "warmup_steps": 5000},
}
TASKS = {
    "owt": OPEN_WEB_TEXT,
    "de_en": {
        **CONDITIONAL,
        "preprocessor": {"sequence_length": 128, "condition_length": 64, "pad_with": "end"},
        "recipe": {
            **CONDITIONAL["recipe"],
            "dataset": f"{HUB}/wmt14_de-en_train_t5",
            "num_rows": 4_505_600,
        },
    },
    "xsum": {
        **CONDITIONAL,
        "preprocessor": {"sequence_length": 1088, "condition_length": 1024, "pad_with": "end"},
        "recipe": {
            **CONDITIONAL["recipe"],
            "dataset": f"{HUB}/xsum_train_t5",
            "num_rows": 204_800,
        },
    },
}


def _perplexity(num_steps, gamma, perplexity, entropy, scale=3.0):
    return {
        "data": "OpenWebText, 1000 samples, judge GPT-2 Large",
        "sampler": "sde",
        "num_steps": num_steps,
        "gamma": gamma,
        "self_cond_guidance_scale": scale,
        "generative_perplexity": perplexity,
        "unigram_entropy": entropy,
    }


PRESETS = {
    "elf_b_owt": {
        "architecture": "elf_b",
        "task": "owt",
        "description": "ELF-B, unconditional English web text (OpenWebText)",
        "weights": f"{HUB}/ELF-B-owt-torch",
        "epochs": 5,
        "published": [
            _perplexity(8, 2.0, 67.3, 5.14),
            _perplexity(16, 2.0, 33.7, 5.16),
            _perplexity(32, 1.5, 24.1, 5.15),
            _perplexity(64, 1.0, 19.7, 5.10),
        ],
    },
    "elf_m_owt": {
        "architecture": "elf_m",
        "task": "owt",
        "description": "ELF-M, unconditional English web text (OpenWebText)",
        "weights": f"{HUB}/ELF-M-owt-torch",
        "epochs": 4,
        "generator": {"sampler": SDESampler(1.0), "num_steps": 64},
        "published": [_perplexity(64, 1.0, 21.7, 5.18)],
    },
    "elf_l_owt": {
        "architecture": "elf_l",
        "task": "owt",
        "description": "ELF-L, unconditional English web text (OpenWebText)",
        "weights": f"{HUB}/ELF-L-owt-torch",
        "epochs": 3,
        "generator": {"sampler": SDESampler(1.0), "num_steps": 64},
        "published": [_perplexity(64, 1.0, 23.3, 5.28)],
    },
    "elf_b_de_en": {
        "architecture": "elf_b",
        "task": "de_en",
        "description": "ELF-B, German to English translation (WMT14)",
        "weights": f"{HUB}/ELF-B-de-en-torch",
        "epochs": 100,
        "published": [{"data": "WMT14 De-En test", "bleu": 26.4}],
    },
    "elf_b_xsum": {
        "architecture": "elf_b",
        "task": "xsum",
        "description": "ELF-B, one-sentence summaries of English news (XSum)",
        "weights": f"{HUB}/ELF-B-xsum-torch",
        "epochs": 100,
        "published": [{"data": "XSum test", "rouge1": 36.0, "rouge2": 12.2, "rougeL": 27.8}],
    },
    "elf_b_pd_owt": {
        "architecture": "elf_b",
        "task": "owt",
        "description": "ELF-B distilled for few steps, unconditional English web text",
        "weights": f"{HUB}/ELF-B-PD-owt-torch",
        "epochs": None,
        "generator": {
            "sampler": SDESampler(1.5),
            "num_steps": 8,
            "self_cond_guidance_scale": 2.5,
        },
        "published": [
            _perplexity(1, 1.5, 136.1, 5.26, 2.5),
            _perplexity(2, 1.5, 68.3, 5.24, 2.5),
            _perplexity(4, 1.5, 34.3, 5.16, 2.5),
            _perplexity(8, 1.5, 23.2, 5.07, 2.5),
            _perplexity(16, 2.0, 22.1, 5.06, 2.0),
            _perplexity(32, 2.0, 21.3, 5.04, 2.0),
        ],
        "distillation": {
            "teacher": "elf_b_owt",
            "student_steps": [16, 8, 4, 2, 1],
            "teacher_sub_steps": [4, 8, 16, 32, 64],
        },
    },
}


def files(name):
    """The content of each file of a preset, by file name."""
    preset = PRESETS[name]
    task = TASKS[preset["task"]]
    sizes = architecture(preset["architecture"])
    preprocessor = ELFPreprocessor(
        keras_hub.models.T5Tokenizer(proto=None, name="tokenizer"),
        vocabulary_size=32100,
        name="preprocessor",
        **task["preprocessor"],
    )
    # A small model's configuration with the large one's sizes: nothing of 2.6 GB is allocated.
    encoder = T5Encoder(**{**T5_SMALL, "num_layers": 1, "intermediate_dim": 8}, name="t5_encoder")
    backbone = ELFBackbone(
        **{**sizes, "depth": 1, "hidden_size": 8, "num_heads": 2},
        dtype="float32",
        name="elf_backbone",
    )
    model = ELFGenerator(
        backbone,
        encoder,
        preprocessor,
        objective=ELFObjective(**task["objective"]),
        name="elf_generator",
        **{**task["generator"], **preset.get("generator", {})},
    )
    generator = _serialized(model)
    for part, true_sizes in (("backbone", sizes), ("encoder", T5_SMALL)):
        generator["config"][part]["config"].update(true_sizes)
    written = {
        "config.json": generator["config"]["backbone"],
        "task.json": generator,
        "preprocessor.json": _serialized(preprocessor),
        "tokenizer.json": _serialized(preprocessor.tokenizer),
        "preset.json": {
            "description": preset["description"],
            "parameters": parameter_count(**sizes),
            "license": "MIT",
            "paper": "arXiv 2605.10938",
            "weights": preset["weights"],
            "encoder": ENCODER_SOURCE,
            "published": preset["published"],
        },
    }
    if "distillation" in preset:
        written["preset.json"]["distillation"] = preset["distillation"]
    else:
        written["recipe.json"] = {"epochs": preset["epochs"], **task["recipe"]}
    return written


def _serialized(thing):
    return _without(keras.saving.serialize_keras_object(thing), ("build_config", "compile_config"))


def _without(config, names):
    if isinstance(config, dict):
        return {k: _without(v, names) for k, v in config.items() if k not in names}
    return config


def main(directory=None):
    """Write all presets below `directory`, by default the folder of this file."""
    directory = pathlib.Path(directory or pathlib.Path(__file__).parent)
    for name in PRESETS:
        (directory / name).mkdir(parents=True, exist_ok=True)
        for file, content in files(name).items():
            text = json.dumps(content, indent=2) + "\n"
            (directory / name / file).write_text(text, encoding="utf-8")
        print(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
