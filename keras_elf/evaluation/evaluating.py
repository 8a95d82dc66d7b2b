"""`evaluate_generation`: texts in, or a model that writes them; one report out."""

import json
import os
import time

import numpy as np

from keras_elf import checks, samplers
from keras_elf.evaluation import against_corpus, circumstances, collapse, diversity, overlap
from keras_elf.evaluation.entropy import entropies
from keras_elf.evaluation.judges import DEFAULT_JUDGE, load_judge
from keras_elf.evaluation.report import GenerationReport
from keras_elf.evaluation.texts import check_pairs, check_texts, words


def evaluate_generation(
    model_or_texts,
    inputs=None,
    references=None,
    *,
    num_samples=None,
    judge="auto",
    judge_batch_size=8,
    seed=0,
    preset=None,
    settings=None,
    corpus=None,
    **generate_kwargs,
):
    """Write texts, or take them as they are, and report how good they are.

    Unconditional text gets generative perplexity and unigram entropy, always together; text
    with references gets BLEU, ROUGE and exact match. All text gets distinct-n and repetition,
    which need no model, and with a corpus how much of it is new and whether it opens alike. The
    report holds everything that a figure depends on, and flags collapsed text.

    Texts with fewer than two tokens cannot be scored: they count with entropy 0, are left out of
    the perplexity, and their share is reported.

    Example:

    ```python
    report = keras_elf.evaluation.evaluate_generation("elf_b_owt", num_samples=1000)
    rich.print(report.table())
    pathlib.Path("report.json").write_text(report.to_json())
    ```

    Args:
        model_or_texts: `ELFGenerator` with a preprocessor; the name or directory of a preset of
            one; or a list of str that some model wrote.
        inputs: list of str. Conditions for the model to write from. Defaults to `None`.
        references: list of str, one a text, for BLEU and ROUGE. Defaults to `None`.
        num_samples: int. Unconditional texts to write. Defaults to `1000`, as published.
        judge: see `load_judge`, or `None` for no perplexity. Defaults to `"auto"`:
            `"gpt2_large_en"`, and no judge where there are references.
        judge_batch_size: int. Texts scored at once. Defaults to `8`.
        seed: int >= 0, or `None` for a fresh one; the report has it. Defaults to `0`.
        preset: str. One of `ELFGenerator.presets`, whose published figures are put beside.
            Defaults to the one that was named as the model.
        settings: dict, JSON-able. How texts that are passed in were made. Defaults to `None`.
        corpus: list of str, what the texts should be like: training or held-out text. Collapse
            is then judged beside it, see `corpus_figures`. Defaults to `None`.
        **generate_kwargs: of `ELFGenerator.generate`: `num_steps`, `sampler`, `batch_size`, ...

    Returns:
        `GenerationReport`.

    Raises:
        ValueError: for texts, inputs or references that do not fit, or a judge that cannot be
            used.
        TypeError: for unknown arguments.
        ImportError: if sacrebleu or rouge-score is needed and missing.

    Source: ELF, arXiv 2605.10938 (evaluation).
    """
    checks.no_unknown("evaluate_generation", generate_kwargs, circumstances.GENERATE_ARGUMENTS)
    if isinstance(judge, str) and judge == "auto":
        judge = DEFAULT_JUDGE if references is None else None
    if references is not None:
        references = check_texts("references", references)
        overlap.bleu_metric(), overlap.rouge_scorer()  # Missing libraries show before any work.
    if corpus is not None:
        corpus = check_texts("corpus", corpus)
    model, preset = _model(model_or_texts, preset)
    if preset is not None:
        circumstances.published_protocol(preset, 0, {}, None, {})  # An unknown one is refused now.
    _check_call(model, inputs, references, num_samples, settings, generate_kwargs)
    if judge is not None:
        judge = load_judge(judge, batch_size=judge_batch_size)

    start = time.perf_counter()
    if model is None:
        texts = check_texts("model_or_texts", model_or_texts, allow_empty=True)
        settings, seconds = _jsonable("settings", settings or {}), {}
    else:
        seed = samplers.SampleNoise(seed).seed
        settings = circumstances.sampling_settings(model, seed, inputs is not None, generate_kwargs)
        if inputs is None:
            num_samples = 1000 if num_samples is None else num_samples
        else:
            inputs = check_texts("inputs", inputs)
        texts = model.generate(inputs, num_samples, seed=seed, **generate_kwargs)
        seconds = {"generation": time.perf_counter() - start}
    if references is not None:
        check_pairs(texts, references)

    start = time.perf_counter()
    conditional = inputs is not None or references is not None
    figures, flags = _figures(texts, references, judge, conditional)
    if corpus is not None:
        beside = against_corpus.corpus_figures(texts, corpus)
        figures |= beside
        flags += against_corpus.corpus_flags(texts, corpus, beside)
    seconds["evaluation"] = time.perf_counter() - start
    judge = None if judge is None else judge.describe()
    published, differences = None, ()
    if preset is not None:
        published, differences = circumstances.published_protocol(
            preset, len(texts), settings, judge, figures
        )
    libraries = () if references is None else ("sacrebleu", "rouge-score")
    return GenerationReport(
        num_samples=len(texts),
        figures=figures,
        flags=flags,
        settings=settings,
        judge=judge,
        environment=circumstances.environment(*libraries),
        seconds=seconds,
        published=published,
        differences=differences,
    )


def _model(model_or_texts, preset):
    """The model, or `None` for texts, and the preset to compare with."""
    if isinstance(model_or_texts, str):
        from keras_elf.models import ELFGenerator
        from keras_elf.presets import bundled

        known = model_or_texts in bundled.directories()
        if not known and "://" not in model_or_texts and not os.path.isdir(model_or_texts):
            raise ValueError(
                f"`model_or_texts`: {bundled.unknown(model_or_texts)}. Texts are passed as a list"
            )
        return ELFGenerator.from_preset(model_or_texts), preset or (
            model_or_texts if known else None
        )
    is_model = hasattr(model_or_texts, "generate") and hasattr(model_or_texts, "backbone")
    return model_or_texts if is_model else None, preset


def _check_call(model, inputs, references, num_samples, settings, generate_kwargs):
    if model is None:
        given = {"inputs": inputs, "num_samples": num_samples, **generate_kwargs}
        given = sorted(name for name, value in given.items() if value is not None)
        if given:
            raise ValueError(
                "Where texts are passed in, nothing is generated, and `settings` says how they "
                f"were made. Received besides: {given}"
            )
        return
    if settings is not None:
        raise ValueError("`settings` is for texts that are passed in; a model's are read off it.")
    if getattr(model, "preprocessor", None) is None:
        raise ValueError(
            "`model_or_texts` must be a model with a preprocessor: figures are of text, and a "
            "model on token ids writes none."
        )
    if references is not None and inputs is None:
        raise ValueError("`references` need `inputs`: texts without conditions have none.")


def _jsonable(name, value):
    """`value` as JSON will give it back, or ValueError: hours of sampling must not be lost."""
    if not isinstance(value, dict):
        raise ValueError(f"`{name}` must be a dict. Received: {value!r:.100}")
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"`{name}` must be of what JSON can hold: {error}") from error


def _figures(texts, references, judge, conditional):
    rows = [words(text) for text in texts]
    full = [row for row in rows if row]
    figures = {}
    lengths, values, unit = [len(row) for row in full], entropies(full), "words"
    unscored = len(texts) - sum(len(row) > 1 for row in rows)
    tells = False
    if judge is not None:
        ids = judge.token_ids(texts)
        scored = [row for row in ids if len(row) > 1]
        unscored = len(texts) - len(scored)
        if not scored:
            raise ValueError(
                "`model_or_texts` gave no text of two tokens or more, so nothing can be judged."
            )
        nats, counts = judge.negative_log_likelihood(scored)
        figures["generative_perplexity"] = float(np.exp(nats.sum() / counts.sum()))
        judged = entropies(scored)
        figures["unigram_entropy"] = float(judged.sum() / len(texts))
        figures["mean_tokens"] = float(np.mean([len(row) for row in ids]))
        tells = judge.vocabulary_size >= collapse.MIN_VOCABULARY
        if tells:
            lengths, values = [len(row) for row in scored], judged
            unit = f"tokens of {judge.name}"
        tells = tells and figures["mean_tokens"] >= collapse.PERPLEXITY_MIN_LENGTH
    if references is not None:
        figures["bleu"] = overlap.bleu(texts, references)
        figures.update(overlap.rouge(texts, references))
        figures["exact_match"] = overlap.exact_match(texts, references)
    for n in (1, 2, 3):
        if any(len(row) >= n for row in rows):
            figures[f"distinct_{n}"] = diversity.distinct_n(texts, n)
    figures["repeated_4grams"] = diversity.repeated_ngrams(texts, 4)
    figures["looping_texts"] = diversity.looping_texts(texts)
    figures["different_texts"] = len(set(texts)) / len(texts)
    figures["unscored_texts"] = unscored / len(texts)
    figures["word_entropy"] = float(entropies(full).sum() / len(texts))
    figures["mean_words"] = float(np.mean([len(row) for row in rows]))
    low = collapse.low_entropy(values, lengths)
    return figures, collapse.collapse_flags(figures, low, unit, tells, conditional)
