"""Models with and without conditions: their settings, and conditions given in vain."""

import warnings

import pytest

from keras_elf.models import ELFGenerator, conditional_settings
from keras_elf.testing import dummy_generator, dummy_texts


def warned(model, *args):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.generate(*args, num_steps=1, seed=0, verbose=False)
    return any("trained on texts without any" in str(w.message) for w in caught)


def test_a_condition_given_in_vain_is_told_and_the_preset_remembers(tmp_path):
    model, texts = dummy_generator(), dummy_texts(16)
    assert not warned(model, ["fox"])  # Nobody knows what its weights were trained on.
    model.compile()
    model.fit(texts, epochs=1, batch_size=8, verbose=0)
    assert model.conditional is False and warned(model, ["fox"]) and not warned(model)
    model.save_to_preset(tmp_path / "elf")
    loaded = ELFGenerator.from_preset(tmp_path / "elf")
    assert warned(loaded, ["fox"])
    loaded.fit({"condition": texts[:8], "target": texts[8:]}, batch_size=8, verbose=0)
    assert loaded.conditional is True and not warned(loaded, ["fox"])
    # What was learned with conditions stays so when texts without follow.
    loaded.fit(texts[:8], batch_size=8, verbose=0)
    assert loaded.conditional is True


def test_old_presets_do_not_know_and_do_not_warn():
    config = dummy_generator().get_config()
    assert config.pop("conditional") is None
    assert ELFGenerator.from_config(config).conditional is None


def test_conditional_settings_are_those_of_the_published_conditional_tasks():
    settings = conditional_settings()
    assert settings["objective"].decode_corruption.noise_scale == 1.0
    assert settings["label_drop_probability"] == 0.1
    assert settings["sampler"].needs_noise is False and settings["guidance_scale"] == 1.0


def test_reading_back_counts_end_tokens_and_is_not_cut_by_a_condition(monkeypatch):
    model, texts = dummy_generator(), dummy_texts(8)
    rows = dict(model.preprocessor({"condition": texts, "target": texts}))
    read = rows["token_ids"].copy()
    read[:, 0] = model.preprocessor.end_token_id  # In the condition, where nothing is learned.
    monkeypatch.setattr(model, "_read", lambda *args: read)
    assert model.reconstruct(rows, return_accuracy=True) == pytest.approx(1.0)
