"""`evaluate_generation`: what a report holds, and what it flags."""

import json
import math

import keras
import numpy as np
import pytest
from rich.console import Console

from keras_elf import samplers
from keras_elf.data import king_james_verses
from keras_elf.evaluation import GenerationReport, bleu, evaluate_generation, rouge
from tests.evaluation.paper_judge import PaperJudge
from tests.models import small

pytestmark = pytest.mark.backend_free


@pytest.fixture(scope="module")
def verses():
    return king_james_verses()[:300]


@pytest.fixture(scope="module")
def report(verses):
    return evaluate_generation(verses, judge=PaperJudge(), preset="elf_b_owt")


@pytest.fixture(scope="module")
def model():
    """A conditional model, uncompiled and with a mock in the network's place."""
    made = small.enliven(
        small.generator("gaussian", preprocessor=small.preprocessor(condition_length=5))
    )
    made.compile(run_eagerly=True)
    with small.recorded_forwards(made.backbone, mock=True) as calls:
        yield made, calls


def as_text(report):
    console = Console(width=200, record=True, file=open("/dev/null", "w"))
    console.print(report.table())
    return console.export_text()


def test_verses_are_not_flagged(report, verses):
    assert report.flags == () and not report.collapsed
    figures = report.figures
    assert report.num_samples == 300 and figures["unscored_texts"] == 0
    assert 1 < figures["generative_perplexity"] < math.exp(3.0)
    assert 2 < figures["unigram_entropy"] < math.log(60)
    ids = PaperJudge().token_ids(verses)
    assert figures["mean_tokens"] == pytest.approx(np.mean([len(row) for row in ids]))


@pytest.mark.parametrize("judge", [None, PaperJudge(), PaperJudge(vocabulary_size=300)])
@pytest.mark.parametrize("length", [10, 1000])
def test_a_constant_word_is_flagged(judge, length):
    report = evaluate_generation(["word " * length] * 20, judge=judge)
    assert report.collapsed
    assert [flag.split(":")[0] for flag in report.flags] == ["Collapsed", "Repetitive", "Alike"]
    if judge is not None:
        # What makes collapsed text dangerous: the perplexity looks better than any real text's.
        assert report.figures["generative_perplexity"] < 2
        assert "means nothing" in report.flags[0]


def test_other_flags(verses):
    def first_words(texts, **kwargs):
        return [flag.split(":")[0] for flag in evaluate_generation(texts, **kwargs).flags]

    collapsed = ["and the " * 20 + f"{i}" for i in range(60)]
    assert first_words(verses + collapsed, judge=None) == ["Collapsed"]
    assert first_words(verses + verses, judge=None) == ["Alike"]
    assert first_words(verses + [""] * 30, judge=None) == ["Empty"]
    long = [" ".join(f"{i}w{j}" for j in range(200)) for i in range(9)]
    assert first_words(long, judge=PaperJudge(nats=6.0)) == ["Incoherent"]
    assert first_words(long, judge=PaperJudge(nats=6.0, vocabulary_size=300)) == []
    # Equal answers to equal questions are no sign of collapse.
    assert first_words(verses[:5] * 2, references=verses[:5] * 2) == []


def test_texts_that_cannot_be_scored(verses):
    judge = PaperJudge()
    whole = evaluate_generation(verses[:9], judge=judge).figures
    figures = evaluate_generation([*verses[:9], "One"], judge=judge).figures
    assert figures["unscored_texts"] == 0.1
    assert figures["generative_perplexity"] == whole["generative_perplexity"]
    assert figures["unigram_entropy"] == pytest.approx(0.9 * whole["unigram_entropy"])


def test_published_figures_stand_beside(report):
    assert report.published["num_steps"] in (8, 16, 32, 64)
    assert "300 samples, published 1000" in report.differences
    assert not any("judge" in difference for difference in report.differences)
    text = as_text(report)
    assert f"{report.published['generative_perplexity']:g}" in text
    assert f"{report.figures['unigram_entropy']:.3f}" in text
    assert "300 samples, published 1000" in text


def test_the_nearest_published_row():
    settings = {"num_steps": 32, "sampler": "sde", "sampler_config": {"gamma": 1.5}}
    settings |= {"self_cond_guidance_scale": 3.0, "length": 1024}
    texts = king_james_verses()[:1000]
    made = evaluate_generation(texts, judge=PaperJudge(), preset="elf_b_owt", settings=settings)
    assert made.published["generative_perplexity"] == 24.1
    assert made.differences == ()
    settings["num_steps"] = 31
    made = evaluate_generation(texts[:9], judge=None, preset="elf_b_owt", settings=settings)
    assert "num_steps 31, published" in made.differences[0]
    assert any("judge none" in difference for difference in made.differences)


def test_references_give_bleu_and_rouge(verses):
    texts = [verse.replace("the", "a") for verse in verses[:20]]
    report = evaluate_generation(texts, references=verses[:20], preset="elf_b_xsum")
    assert report.judge is None and "generative_perplexity" not in report.figures
    assert report.figures["bleu"] == bleu(texts, verses[:20])
    assert report.figures["rougeL"] == rouge(texts, verses[:20])["rougeL"] < 100
    assert report.published["rouge1"] == 36.0 and "XSum test" in report.differences[0]
    assert {"sacrebleu", "rouge-score"} <= set(report.environment["versions"])


def test_json_round_trip(report):
    again = GenerationReport.from_json(report.to_json())
    assert again == report and again.to_json() == report.to_json()
    assert json.loads(report.to_json())["environment"]["backend"] == keras.backend.backend()
    with pytest.raises(AttributeError):
        report.flags = ()


def test_a_model_is_sampled_and_described(model, monkeypatch):
    model, calls = model
    written, generate = [], model.generate

    def recorded(inputs, num_samples, **kwargs):
        written.append((inputs, num_samples, kwargs, generate(inputs, num_samples, **kwargs)))
        return written[-1][-1]

    monkeypatch.setattr(model, "generate", recorded)
    del calls[:]
    options = {"num_steps": 2, "guidance_scale": 2.0, "sampler": samplers.SDESampler(gamma=1.0)}
    report = evaluate_generation(
        model, ["And", "In the"], ["a b", "c d"], seed=5, verbose=False, **options
    )
    ((inputs, num_samples, kwargs, texts),) = written
    assert inputs == ["And", "In the"] and num_samples is None
    assert kwargs == {"seed": 5, "verbose": False, **options}
    assert report.figures["bleu"] == bleu(texts, ["a b", "c d"])
    settings = report.settings
    # Counted in the network itself: two predictions a step, and the decoding.
    assert settings["forwards_per_text"] == sum(call["z"].shape[0] for call in calls) / 2 == 5
    assert settings["sampler"] == "sde"
    assert settings["sampler_config"] == options["sampler"].get_config()
    assert settings["seed"] == 5 and settings["dtype"] == "float32"
    assert settings["length"] == small.LENGTH and settings["guidance_scale"] == 2.0
    assert report.num_samples == 2 and report.seconds["generation"] > 0
    assert GenerationReport.from_json(report.to_json()) == report


def test_a_fresh_seed_is_recorded(model):
    made = [
        evaluate_generation(
            model[0], num_samples=2, num_steps=1, judge=None, seed=None, verbose=False
        ).settings["seed"]
        for _ in range(2)
    ]
    assert made[0] != made[1] and min(made) >= 0


def test_published_settings_are_those_of_the_model(model):
    model, calls = model
    del calls[:]
    report = evaluate_generation(
        model, num_samples=1, num_steps=1, judge=None, preset="elf_b_owt", verbose=False
    )
    assert report.published["num_steps"] == 32  # gamma 1.5 and w 3 are the model's defaults.
    assert any(difference.startswith("num_steps 1,") for difference in report.differences)
    assert "guidance_scale" not in report.settings
    assert report.settings["forwards_per_text"] == len(calls) == 2
