"""Best of n: several candidates for each text, the best one kept."""

import dataclasses

import keras
import numpy as np

from keras_elf import checks, samplers
from keras_elf.evaluation.circumstances import GENERATE_ARGUMENTS
from keras_elf.evaluation.judges import DEFAULT_JUDGE, load_judge
from keras_elf.evaluation.overlap import bleu_metric, bleu_tokenizer, rouge_scorer
from keras_elf.evaluation.texts import check_texts

SCORES = ("judge", "consensus", "consensus_rouge")


@dataclasses.dataclass(frozen=True, eq=False)
class RankedTexts:
    """All that `best_of` made.

    Attributes:
        texts: list of str. The best candidate of each text.
        candidates: list of lists of str, `n` for each text.
        scores: float64 array `(texts, n)`; higher is better.
        seed: int. The seed that gives these candidates again.
    """

    texts: list
    candidates: list
    scores: np.ndarray
    seed: int


def best_of(
    model,
    inputs=None,
    n=8,
    score="consensus",
    *,
    num_samples=None,
    judge=DEFAULT_JUDGE,
    seed=None,
    return_all=False,
    **generate_kwargs,
):
    """Write `n` candidates for each text and keep the one with the highest score.

    The same seed gives the same texts. All candidates are sampled by one call of
    `model.generate`, in its batches; `n` costs `n` times one text.

    Args:
        model: `ELFGenerator` with a preprocessor.
        inputs: str or list of str. Conditions. Defaults to `None`: unconditional text.
        n: int. Candidates for each text. Defaults to `8`.
        score: how good a candidate is, one of
            `"consensus"`, `"consensus_rouge"`: mean sentence BLEU (ROUGE-L) with the other
            candidates of the same text as references, which is minimum Bayes risk decoding.
            Meant for conditions; needs sacrebleu (rouge-score);
            `"judge"`: minus the logarithm of the perplexity under `judge`. It prefers
            repetition, so look at the entropy of what it chose;
            a callable `(texts, conditions) -> scores`, which gets all candidates at once, the
            `n` of the first text first: two lists of one length, conditions `None` for
            unconditional text, and returns one finite number each, higher being better.
            Defaults to `"consensus"`.
        num_samples: int. How many unconditional texts. Defaults to `1`.
        judge: see `load_judge`; for `score="judge"`. Defaults to `"gpt2_large_en"`.
        seed: int or `None`. `None` differs between calls. Defaults to `None`.
        return_all: bool. Whether to return `RankedTexts`. Defaults to `False`.
        **generate_kwargs: of `ELFGenerator.generate`: `num_steps`, `sampler`, `batch_size`, ...

    Returns:
        list of str (a str where `inputs` is a str), or `RankedTexts`. Where candidates have the
        same score, the first is kept.

    Raises:
        ValueError: for arguments out of range, a model without a preprocessor, or scores that
            are not one finite number a candidate.
        TypeError: for unknown arguments.
        ImportError: if sacrebleu or rouge-score is needed and missing.
    """
    checks.no_unknown("best_of", generate_kwargs, GENERATE_ARGUMENTS)
    n = checks.integer("n", n, minimum=1)
    if getattr(model, "preprocessor", None) is None:
        raise ValueError(
            "`model` must be an ELFGenerator with a preprocessor, as candidates are compared as "
            f"text. Received: {model!r:.100}"
        )
    rank = _ranking(score, judge)
    single = isinstance(inputs, str)
    if inputs is None:
        number = checks.integer("num_samples", 1 if num_samples is None else num_samples, minimum=1)
        conditions, samples = None, number * n
    else:
        if num_samples is not None:
            raise ValueError(
                "`num_samples` is for unconditional text: with `inputs` there is one text per "
                f"condition. Received: num_samples={num_samples!r}"
            )
        inputs = check_texts("inputs", [inputs] if single else inputs)
        number, samples = len(inputs), None
        conditions = [condition for condition in inputs for _ in range(n)]
    seed = samplers.SampleNoise(seed).seed
    texts = model.generate(conditions, samples, seed=seed, **generate_kwargs)
    scores = rank(texts, [None] * len(texts) if conditions is None else conditions, n)
    scores = scores.reshape(number, n)
    candidates = [texts[i * n : (i + 1) * n] for i in range(number)]
    best = [group[i] for group, i in zip(candidates, scores.argmax(axis=1), strict=True)]
    if return_all:
        return RankedTexts(best, candidates, scores, seed)
    return best[0] if single else best


def _ranking(score, judge):
    """`(texts, conditions, n) -> scores`; what is missing shows before any sampling."""
    if callable(score):
        return lambda texts, conditions, n: _finite(score(list(texts), list(conditions)), texts)
    checks.choice("score", score, SCORES)
    if score == "judge":
        judge = load_judge(judge)
        return lambda texts, conditions, n: _judge_scores(texts, judge)
    similarity = _bleu if score == "consensus" else _rouge
    similarity([])  # Missing libraries show before any sampling.
    return lambda texts, conditions, n: _consensus(texts, n, similarity(texts))


def _finite(scores, texts):
    try:
        array = np.asarray(keras.ops.convert_to_numpy(scores), "float64")
    except (TypeError, ValueError) as error:
        raise ValueError(f"`score` must return numbers. Received: {scores!r:.100}") from error
    if array.shape != (len(texts),) or not np.isfinite(array).all():
        raise ValueError(
            f"`score` must return one finite number for each of {len(texts)} texts. Received: an "
            f"array of shape {array.shape} with {int((~np.isfinite(array)).sum())} that are not "
            "finite"
        )
    return array


def _judge_scores(texts, judge):
    rows = judge.token_ids(texts)
    scored = [i for i, row in enumerate(rows) if len(row) > 1]
    scores = np.full(len(texts), -np.inf)
    if scored:
        nats, counts = judge.negative_log_likelihood([rows[i] for i in scored])
        scores[scored] = -nats / counts
    return scores


def _consensus(texts, n, similarity):
    scores = np.zeros(len(texts))
    for i, text in enumerate(texts):
        first = i - i % n
        others = [texts[j] for j in range(first, first + n) if j != i]
        scores[i] = np.mean([similarity(text, other) for other in others]) if others else 0.0
    return scores


def _bleu(texts):
    metric = bleu_metric(bleu_tokenizer(texts))
    return lambda text, other: metric.sentence_score(text, [other]).score


def _rouge(texts):
    scorer = rouge_scorer(["rougeL"], texts)
    return lambda text, other: 100 * scorer.score(other, text)["rougeL"].fmeasure
