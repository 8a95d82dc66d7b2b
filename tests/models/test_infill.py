"""`infill`: what is given comes back, wherever it stood."""

import numpy as np
import pytest

from tests.models import small

TEXTS = ["And <mask:2> the", "<mask:3> LORD", "God <mask> said <mask>"]
SETTINGS = {"num_steps": 2, "seed": 0, "verbose": False}


@pytest.fixture(scope="module")
def model():
    return small.enliven(small.generator())


@pytest.fixture(scope="module")
def filled(model):
    return model.infill(TEXTS, **SETTINGS, return_token_ids=True)


def test_given_tokens_come_back_unchanged(model, filled):
    from keras_elf.data.holes import hole_rows

    rows, _ = hole_rows(TEXTS, model.preprocessor.tokenizer, small.LENGTH)
    given = rows["is_cond"]
    np.testing.assert_array_equal(filled[given], rows["token_ids"][given])
    assert len(set(filled[~given].tolist())) > 1


def test_text_holds_what_was_given_in_order(model, filled):
    texts = model.infill(TEXTS, **SETTINGS)
    # A filling may go on with the word before it.
    assert texts[0].startswith("And") and texts[0].endswith(" the")
    assert texts[1].endswith("LORD")
    assert texts[2].startswith("God") and " said" in texts[2]
    assert model.infill(TEXTS[0], **SETTINGS) == texts[0]


def test_fillings_depend_on_seed_and_neighbours_but_not_on_the_batch(model, filled):
    alone = model.infill(TEXTS, **SETTINGS, batch_size=1, return_token_ids=True)
    np.testing.assert_array_equal(alone, filled)
    other = model.infill(TEXTS, **{**SETTINGS, "seed": 1}, return_token_ids=True)
    assert (other != filled).any()


def test_given_latents_are_pinned_at_every_step(model):
    """Wherever they are, not only in front."""
    states = []
    model.infill(TEXTS[1], **SETTINGS, callback=lambda state: states.append(np.array(state.z)))
    given = slice(3, small.LENGTH)
    assert np.abs(states[0][:, given] - states[-1][:, given]).max() == 0
    assert np.abs(states[0][:, :3] - states[-1][:, :3]).max() > 0


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ("no hole", "must have one"),
        ([], "at least one text"),
        ([3], "must be a str"),
        ("<mask:13>", "more than the 12 tokens"),
        ("<mask:0>", "Received: '<mask:0>'"),
    ],
)
def test_mistakes(model, inputs, message):
    with pytest.raises(ValueError, match=message):
        model.infill(inputs, **SETTINGS)


def test_a_model_on_ids_cannot(model):
    with pytest.raises(ValueError, match="needs a preprocessor"):
        small.generator(preprocessor=None).infill("<mask>")
