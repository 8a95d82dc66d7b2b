"""What `compile()` and `fit` choose is enough to learn a small language."""

import importlib.util
import pathlib

import pytest

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "template_sentences.py"


@pytest.mark.slow
def test_the_automatic_settings_write_grammatical_sentences():
    spec = importlib.util.spec_from_file_location("template_sentences", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    shares = example.main(["--samples", "200"])
    assert min(shares.values()) >= 0.88, shares
