"""Keras's utilities on whole models: each works, or says what does."""

import keras
import numpy as np
import pytest

from tests.models import small


@pytest.fixture(scope="module")
def model():
    return small.enliven(small.generator("gaussian"))


def test_clone_model_is_refused_and_what_it_advises_works(model, tmp_path):
    for part in (model, model.backbone):
        with pytest.raises(ValueError, match=f"`{type(part).__name__}.from_preset"):
            keras.models.clone_model(part)
    model.save_to_preset(tmp_path / "copy")
    copy = type(model).from_preset(tmp_path / "copy")
    for ours, theirs in zip(copy.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    settings = {"num_samples": 2, "seed": 0, "num_steps": 2, "verbose": False}
    assert copy.generate(**settings) == model.generate(**settings)
    fresh = type(model).from_preset(tmp_path / "copy", load_weights=False)
    assert fresh.count_params() == model.count_params()


def test_summary_lists_encoder_and_network(model):
    lines = []
    model.summary(print_fn=lambda line, **_: lines.append(line))
    said = "\n".join(lines)
    assert "latent_encoder" in said and "context_prefix" in said


def test_export_names_what_exports(model, tmp_path):
    with pytest.raises(ValueError, match="export_denoiser"):
        model.export(str(tmp_path / "out"))
    assert not list(tmp_path.iterdir())
