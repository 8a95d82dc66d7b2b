"""The tiny parts fit together, are the same at every call, and are no dead networks."""

import subprocess
import sys

import numpy as np
import pytest
from keras import ops

from keras_elf import testing


def values(model):
    return [ops.convert_to_numpy(v) for v in model.weights]


def test_the_generator_trains_and_writes():
    model = testing.dummy_generator()
    history = model.fit(testing.dummy_texts(16), batch_size=8, epochs=1, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    texts = model.generate(num_samples=3, seed=0)
    assert len(texts) == 3
    words = set(testing.TemplateGrammar().words)
    assert all(set(text.split()) <= words for text in texts)


def test_it_is_the_same_at_every_call_and_another_by_another_seed():
    first, again, other = (testing.dummy_generator(seed=seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(values(first), values(again), strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(values(first), values(other), strict=True))


def test_predictions_are_not_zero():
    noise = np.random.default_rng(0).standard_normal((2, 5, 16))
    z, t = ops.convert_to_tensor(noise.astype("float32")), ops.ones((2,))
    network = testing.dummy_backbone()
    hidden = network.hidden_states(z, t)
    assert np.abs(ops.convert_to_numpy(network.denoising_head(hidden))).min(axis=-1).max() > 0
    logits = ops.convert_to_numpy(network.unembedding(hidden))
    assert logits.shape == (2, 5, 64) and logits.std() > 0.1
    dead = testing.dummy_backbone(enlivened=False)
    prediction = dead.denoising_head(dead.hidden_states(z, t))
    assert not ops.convert_to_numpy(prediction).any()


def test_a_model_on_ids():
    model = testing.dummy_generator(preprocessor=None)
    ids = model.generate(num_samples=2, seed=0)
    assert np.asarray(ids).shape == (2, 16)


def test_a_conditional_model_takes_number_pairs():
    pairs = testing.number_pairs(12, maximum=99)
    tokenizer = testing.dummy_tokenizer(pairs["condition"] + pairs["target"])
    preprocessor = testing.dummy_preprocessor(tokenizer, condition_length=8)
    model = testing.dummy_generator(preprocessor)
    model.fit(pairs, batch_size=6, epochs=1, verbose=0)
    outputs = model.generate(pairs["condition"][:2], seed=0)
    assert 0 <= testing.exact_match(outputs, pairs["target"][:2]) <= 1


@pytest.mark.backend_free
def test_all_words_of_the_grammar_are_known():
    tokenizer = testing.dummy_tokenizer()
    for sentence in testing.TemplateGrammar().sentences(200, seed=9):
        ids = tokenizer(sentence)
        assert tokenizer.detokenize(ids) == sentence
        assert len(ids) == len(sentence.split())


@pytest.mark.backend_free
def test_importing_it_is_light():
    code = (
        "import sys, keras_elf.testing as t; t.TemplateGrammar().sentences(3); t.number_pairs(3)\n"
        "assert not {'keras', 'keras_hub', 'torch', 'jax', 'tensorflow'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
