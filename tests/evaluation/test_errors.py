"""What cannot be evaluated is refused, with the argument's name and what to do."""

import sys
import types

import keras_hub
import numpy as np
import pytest

from keras_elf import evaluation
from keras_elf.evaluation import (
    GenerationReport,
    best_of,
    bleu,
    distinct_n,
    evaluate_generation,
    generative_perplexity,
    load_judge,
    looping_texts,
    repeated_ngrams,
    rouge,
    unigram_entropy,
)
from tests.evaluation import tiny_judge
from tests.evaluation.paper_judge import PaperJudge

pytestmark = pytest.mark.backend_free
PAPER = PaperJudge()


class Model:
    backbone = preprocessor = None

    def generate(self, *args, **kwargs):
        raise AssertionError("nothing may be sampled before all arguments are checked")


class Writer(Model):
    preprocessor = "one"

    def generate(self, *args, **kwargs):
        return ["a b", "c d"]


BAD = {
    "one str": (lambda: generative_perplexity("text", PAPER), "`texts` must be a list of str"),
    "no texts": (lambda: generative_perplexity([], PAPER), "at least one text"),
    "None": (lambda: generative_perplexity(None, PAPER), "`texts` must be a list of str"),
    "bytes": (lambda: generative_perplexity([b"a b"], PAPER), "of type bytes at index 0"),
    "an empty text": (
        lambda: generative_perplexity(["a b", " "], PAPER),
        "must not hold empty texts. Received: ' ' at index 1",
    ),
    "one token": (
        lambda: generative_perplexity(["a b", "word"], PAPER),
        "two tokens or more.*'word' at index 1, which has 1",
    ),
    "lone surrogates": (lambda: generative_perplexity(["a \ud800"], PAPER), "valid Unicode"),
    "numbers": (lambda: generative_perplexity([1, 2], PAPER), "1 of type int at index 0"),
    "an unknown judge": (
        lambda: generative_perplexity(["a b"], "gpt9_tiny_en"),
        "`judge` could not be loaded.*'gpt9_tiny_en'",
    ),
    "a directory without a judge": (
        lambda: generative_perplexity(["a b"], "tests"),
        "`judge` could not be loaded.*'tests'",
    ),
    "no judge": (lambda: load_judge(None), "`judge` must be a keras_hub.models.CausalLM"),
    "a batch of none": (lambda: load_judge(PAPER.name, batch_size=0), "`batch_size`.*>= 1"),
    "no context": (lambda: load_judge(PAPER.name, max_length=1), "`max_length`.*>= 2"),
    "entropy of nothing": (lambda: unigram_entropy([]), "at least one text"),
    "entropy without a tokenizer": (lambda: unigram_entropy(["a b"]), "`tokenizer` must be"),
    "entropy of an empty row": (lambda: unigram_entropy([[1], []]), "index 1 has no tokens"),
    "entropy of floats": (lambda: unigram_entropy([[0.5, 1.0]]), "flat sequences of token ids"),
    "entropy of a flat list": (lambda: unigram_entropy([1, 2, 3]), "flat sequences of token ids"),
    "distinct-n of short texts": (lambda: distinct_n(["a b"], 3), "at least n=3 words"),
    "distinct-0": (lambda: distinct_n(["a b"], 0), "`n`.*>= 1"),
    "repetition of mixed input": (lambda: repeated_ngrams(["a", [1]]), "list of str"),
    "a loop of one": (lambda: looping_texts(["a b"], times=1), "`times`.*>= 2"),
    "too few references": (lambda: bleu(["a", "b"], ["a"]), "1 references and 2 texts"),
    "an empty reference": (lambda: rouge(["a"], [""]), "`references` must not hold empty"),
    "one reference as str": (lambda: bleu(["a"], "a"), "`references` must be a list of str"),
    "an unknown model": (lambda: evaluate_generation("elf_b_owtt"), "Did you mean 'elf_b_owt'"),
    "an unknown preset": (
        lambda: evaluate_generation(["a b"], judge=None, preset="elf"),
        "no preset named 'elf'",
    ),
    "texts with inputs": (
        lambda: evaluate_generation(["a b"], ["c"], judge=None),
        "nothing is generated.*'inputs'",
    ),
    "texts with a sampler": (
        lambda: evaluate_generation(["a b"], judge=None, sampler="ode"),
        "nothing is generated.*'sampler'",
    ),
    "settings that are no JSON": (
        lambda: evaluate_generation(["a b"], judge=None, settings={"a": {1}}),
        "`settings` must be of what JSON",
    ),
    "settings with NaN": (
        lambda: evaluate_generation(["a b"], judge=None, settings={"a": float("nan")}),
        "`settings` must be of what JSON",
    ),
    "other numbers of references": (
        lambda: evaluate_generation(["a b"], references=["a", "b"]),
        "2 references and 1 texts",
    ),
    "nothing to judge": (
        lambda: evaluate_generation(["", "a"], judge=PAPER),
        "no text of two tokens or more",
    ),
    "a model on ids": (
        lambda: evaluate_generation(Model(), judge=None),
        "must be a model with a preprocessor",
    ),
    "settings for a model": (
        lambda: evaluate_generation(Writer(), judge=None, settings={}),
        "`settings` is for texts",
    ),
    "references without inputs": (
        lambda: evaluate_generation(Writer(), references=["a"]),
        "`references` need `inputs`",
    ),
    "the best of none": (lambda: best_of(Writer(), n=0), "`n`.*>= 1"),
    "the best of ids": (lambda: best_of(Model()), "with a preprocessor"),
    "an unknown score": (
        lambda: best_of(Writer(), score="consensu"),
        "`score` must be one of.*Did you mean 'consensus'",
    ),
    "inputs and a number": (
        lambda: best_of(Writer(), ["a"], num_samples=2),
        "one text per condition",
    ),
    "an empty input": (lambda: best_of(Writer(), ["a", ""]), "`inputs` must not hold empty"),
    "no inputs": (lambda: best_of(Writer(), []), "`inputs` must hold at least one"),
    "a negative seed": (lambda: best_of(Writer(), seed=-1), "`seed`"),
    "scores of another number": (
        lambda: best_of(Writer(), n=2, score=lambda texts, conditions: [1.0]),
        r"one finite number for each of 2 texts. Received: an array of shape \(1,\)",
    ),
    "scores that are NaN": (
        lambda: best_of(Writer(), n=2, score=lambda texts, conditions: [1.0, np.nan]),
        "with 1 that are not finite",
    ),
    "scores that are words": (
        lambda: best_of(Writer(), n=2, score=lambda texts, conditions: ["good", "bad"]),
        "`score` must return numbers",
    ),
    "a report that is not JSON": (lambda: GenerationReport.from_json("{"), "must be JSON"),
    "a report of None": (lambda: GenerationReport.from_json(None), "must be JSON"),
    "another JSON": (lambda: GenerationReport.from_json("[1]"), "report in format 1"),
    "a report with other fields": (
        lambda: GenerationReport.from_json('{"format": 1, "num_samples": 1, "bleu": 3}'),
        r"Unknown fields \['bleu'\], missing fields \['figures'\]",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_value_errors(case):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("function", [best_of, evaluate_generation])
def test_unknown_arguments(function):
    with pytest.raises(TypeError, match=r"unknown arguments \['num_step'\]"):
        function(Writer(), num_step=3)


@pytest.fixture(scope="module")
def parts():
    """A judge and its parts."""
    model = tiny_judge.judge(lively=False)
    return model.backbone, model.preprocessor.tokenizer


def causal_lm(backbone, tokenizer):
    preprocessor = tokenizer and keras_hub.models.GPT2CausalLMPreprocessor(tokenizer)
    return keras_hub.models.GPT2CausalLM(backbone, preprocessor)


def test_judges_that_cannot_judge(parts):
    backbone, tokenizer = parts
    with pytest.raises(ValueError, match="must have a preprocessor"):
        load_judge(causal_lm(backbone, None))
    with pytest.raises(ValueError, match="without a vocabulary"):
        load_judge(causal_lm(backbone, keras_hub.models.GPT2Tokenizer()))
    with pytest.raises(ValueError, match="`max_length` must be at most the judge's 32"):
        load_judge(causal_lm(backbone, tokenizer), max_length=33)
    with pytest.raises(ValueError, match="must be a keras_hub.models.CausalLM"):
        load_judge(backbone)
    endless = tiny_judge.tokenizer()
    endless.end_token_id = None
    with pytest.raises(ValueError, match="without an end token"):
        load_judge(causal_lm(backbone, endless))
    pieces, merges = tiny_judge.vocabulary()
    larger = keras_hub.models.GPT2Tokenizer(vocabulary={**pieces, "qu": 265}, merges=merges)
    with pytest.raises(ValueError, match="knows 265 tokens, but its tokenizer has 266"):
        load_judge(causal_lm(backbone, larger))


@pytest.mark.parametrize(
    "module, package, call",
    [
        ("sacrebleu.metrics", "sacrebleu", lambda: bleu(["a"], ["a"])),
        ("rouge_score", "rouge-score", lambda: rouge(["a"], ["a"])),
        ("sacrebleu.metrics", "sacrebleu", lambda: best_of(Model.__new__(Writer))),
        ("rouge_score", "rouge-score", lambda: evaluate_generation(["a"], references=["a"])),
    ],
)
def test_missing_libraries(monkeypatch, module, package, call):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "rouge_score.rouge_scorer", raising=False)
    with pytest.raises(ImportError, match=rf"{package} is needed.*keras-elf\[eval\]"):
        call()


def test_public_names():
    for name in evaluation.__all__:
        assert not isinstance(getattr(evaluation, name), types.ModuleType), name


def test_a_judge_that_no_network_brings_is_told_plainly(monkeypatch):
    import requests

    def no_network(*args, **kwargs):
        try:
            raise requests.exceptions.ConnectionError("HTTPSConnectionPool(host='x', port=443)")
        except requests.exceptions.ConnectionError as error:
            raise RuntimeError("Max retries exceeded") from error

    monkeypatch.setattr("keras_hub.models.CausalLM.from_preset", no_network)
    with pytest.raises(OSError, match="hub cannot be reached.*--judge none") as caught:
        load_judge("gpt2_large_en")
    assert "HTTPSConnectionPool" not in str(caught.value)

    def a_bug(*args, **kwargs):
        raise RuntimeError("something else")

    monkeypatch.setattr("keras_hub.models.CausalLM.from_preset", a_bug)
    with pytest.raises(RuntimeError, match="something else"):
        load_judge("gpt2_large_en")
