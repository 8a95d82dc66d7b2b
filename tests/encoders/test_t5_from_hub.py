"""A T5 of a hub by its handle: downloaded once, or a plain reason why not, at once."""

import os

import keras
import numpy as np
import pytest
from huggingface_hub import constants

from keras_elf.encoders import T5Encoder
from keras_elf.hub import HubError
from tests.hub.client import fresh_session, pointed_at
from tests.hub.server import loopback_hub, unused_address

REPO = "owner/t5_toy"
TINY = {
    "vocabulary_size": 20,
    "num_layers": 1,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 16,
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    import keras_hub

    keras.utils.set_random_seed(1)
    backbone = keras_hub.models.T5Backbone(**TINY, dropout=0.0)
    path = tmp_path_factory.mktemp("t5") / "preset"
    backbone.save_to_preset(str(path))
    return path


def test_from_a_hub(saved, tmp_path, monkeypatch):
    files = {
        os.path.relpath(os.path.join(folder, name), saved): open(
            os.path.join(folder, name), "rb"
        ).read()
        for folder, _, names in os.walk(saved)
        for name in names
    }
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with loopback_hub({REPO: files}) as hub, fresh_session():
        with pointed_at(hub, tmp_path / "hf", monkeypatch):
            encoder = T5Encoder.from_preset(f"hf://{REPO}")
            here = T5Encoder.from_preset(str(saved))
            for ours, theirs in zip(encoder.variables, here.variables, strict=True):
                np.testing.assert_array_equal(
                    *(keras.ops.convert_to_numpy(v.value) for v in (ours, theirs))
                )
            hub.update("owner/other", {"config.json": b"{}", "model.safetensors": b"x" * 9000})
            with pytest.raises(ValueError, match="`T5Encoder.from_transformers`"):
                T5Encoder.from_preset("hf://owner/other")
            monkeypatch.setattr(constants, "ENDPOINT", unused_address())
            with pytest.raises(HubError, match="cannot be reached"):
                T5Encoder.from_preset("hf://owner/never_seen")
