"""What a plan leaves open is chosen by the text; what it says stays."""

import numpy as np
import pytest

from keras_elf.cli.plan import make_plan
from keras_elf.cli.settling import settle
from keras_elf.data.survey import TextSurvey

pytestmark = pytest.mark.backend_free

SENTENCES = TextSurvey(3000, np.array([11, 12, 13] * 1000))
PAIRS = TextSurvey(6000, np.array([7] * 6000), np.array([4] * 6000))
PAGES = TextSurvey(40_000, np.array([900] * 1000))


def settled(survey, *overrides, lengths=None, vocabulary_size=76, **flags):
    said = []
    plan = make_plan(None, overrides, data="a.txt", **flags)
    return settle(plan, survey, vocabulary_size, said.append, lengths), said


def test_sentences_get_a_row_each_and_a_run_of_minutes():
    plan, said = settled(SENTENCES)
    assert (plan.packing, plan.sequence_length, plan.condition_length) == ("lines", 13, None)
    assert (plan.batch_size, plan.epochs, plan.encoder_steps) == (32, 8, 1860)
    assert (plan.latent_dim, plan.hidden_size, plan.depth) == (64, 128, 4)
    # One line: what was chosen, why, and what changes it.
    assert len(said) == 1 and "a row of 13 tokens" in said[0] and "--packing packed" in said[0]


def test_pages_are_packed_and_get_a_larger_network():
    plan, said = settled(PAGES, vocabulary_size=2048)
    assert (plan.packing, plan.sequence_length) == ("packed", 64)
    assert plan.hidden_size > 128 and plan.latent_dim == 128 and "--packing lines" in said[0]
    assert plan.epochs == 1


def test_pairs_get_a_row_each_whatever_the_packing():
    plan, said = settled(PAIRS, packing="packed")
    assert (plan.packing, plan.sequence_length, plan.condition_length) == ("lines", 11, 4)
    assert "--packing" not in said[0]
    assert settled(PAIRS, "sequence_length=12")[0].condition_length == 4


def test_what_is_said_stays():
    said = ["epochs=3", "batch_size=16", "latent_dim=32", "depth=2", "sequence_length=9"]
    plan, _ = settled(SENTENCES, *said, "encoder_steps=7", packing="packed")
    assert (plan.epochs, plan.batch_size, plan.latent_dim, plan.depth) == (3, 16, 32, 2)
    assert (plan.sequence_length, plan.encoder_steps, plan.packing) == (9, 7, "packed")


def test_the_rows_of_a_preset_are_its_own():
    plan, _ = settled(SENTENCES, lengths=(1024, None))
    assert plan.packing == "packed" and plan.sequence_length is None
    assert settled(SENTENCES, lengths=(16, None))[0].packing == "lines"


def test_a_recipe_is_that_of_the_run_but_for_what_is_said():
    from keras_elf import TrainingRecipe

    plan, _ = settled(SENTENCES, "epochs=8", "batch_size=64")
    assert plan.recipe(46) == TrainingRecipe.for_run(368, 64)
    plan, _ = settled(SENTENCES, "epochs=8", "learning_rate=2e-3", "warmup_steps=7")
    recipe = plan.recipe(46)
    assert (recipe.learning_rate, recipe.warmup_steps, recipe.decay) == (2e-3, 7, "linear")
    assert recipe.final_learning_rate == 0 and recipe.ema_momentum == 1 - 1 / 36.8
    plan, _ = settled(SENTENCES, "epochs=1", "decay=constant", "warmup_steps=500")
    assert (plan.recipe(46).decay, plan.recipe(46).warmup_steps) == ("constant", 500)
    assert settled(SENTENCES, "decay=cosine", "epochs=1")[0].recipe(46).decay == "cosine"
    # The published way: the rate grows with the batch.
    plan, _ = settled(SENTENCES, "base_learning_rate=1e-3", "batch_size=64")
    assert plan.recipe(46).learning_rate == 2.5e-4
