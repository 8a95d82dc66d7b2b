"""A T5 of the toy network's width, in the files that `transformers` writes."""

import json
import pathlib

import numpy as np
import safetensors.numpy
from keras import ops

from keras_elf.data import train_sentencepiece
from keras_elf.encoders import T5Encoder
from keras_elf.encoders.t5_weights import weight_map

CONFIG = pathlib.Path(__file__).parents[1] / "reference/t5/t5_v1_0_hf/config.json"


def write_tiny_t5(directory):
    """Write configuration, weights and a tokenizer of 25 pieces and 12 sentinels."""
    directory.mkdir()
    config = json.loads(CONFIG.read_text())
    config.update(d_model=16, num_layers=1, num_heads=2, d_kv=8, d_ff=8, vocab_size=40)
    (directory / "config.json").write_text(json.dumps(config))
    arrays = {}
    for key, (variable, transposed) in weight_map(T5Encoder(40, 1, 2, 16, 8, 8)).items():
        value = ops.convert_to_numpy(variable)
        arrays[key] = np.ascontiguousarray(value.T if transposed else value)
    safetensors.numpy.save_file(arrays, directory / "model.safetensors")
    verses = ["in the beginning", "the heaven and the earth", "and the evening and the morning"]
    (directory / "spiece.model").write_bytes(train_sentencepiece(verses * 20, 25))
    (directory / "tokenizer_config.json").write_text('{"extra_ids": 12}')
    return directory
