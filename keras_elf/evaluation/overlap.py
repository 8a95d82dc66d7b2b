"""BLEU and ROUGE, as papers on ELF report them, and exact match."""

import importlib

import numpy as np

from keras_elf.evaluation.texts import check_pairs, script_of, words

ROUGE_TYPES = ("rouge1", "rouge2", "rougeL")


def bleu(texts, references):
    """Corpus BLEU of sacrebleu: lower-cased, effective order.

    Tokenized by sacrebleu's default, 13a, as papers report it, but where most letters of the
    references are of a script without blanks: by `zh` for Chinese, by characters for others.

    Args:
        texts: list of str. What the model wrote; texts may be empty.
        references: list of str, one a text.

    Returns:
        float in [0, 100].

    Raises:
        ValueError: for other numbers of references, empty references or other types.
        ImportError: if sacrebleu is missing; the message says how to install it.

    Source: ELF, arXiv 2605.10938 (evaluation).
    """
    texts, references = check_pairs(texts, references)
    metric = bleu_metric(bleu_tokenizer(references))
    # Rounding takes identical texts a little above 100.
    return min(100.0, float(metric.corpus_score(texts, [references]).score))


def rouge(texts, references):
    """ROUGE-1, ROUGE-2 and ROUGE-L of rouge-score: stemmed, mean F-measure times 100.

    rouge-score counts the letters a to z and digits alone. Where most letters of the references
    are others, its words are those of `distinct_n`, not stemmed.

    Args:
        texts: list of str. What the model wrote; texts may be empty.
        references: list of str, one a text.

    Returns:
        dict of `"rouge1"`, `"rouge2"`, `"rougeL"` to floats in [0, 100].

    Raises:
        ValueError: for other numbers of references, empty references or other types.
        ImportError: if rouge-score is missing; the message says how to install it.

    Source: ELF, arXiv 2605.10938 (evaluation).
    """
    texts, references = check_pairs(texts, references)
    scorer = rouge_scorer(references=references)
    scores = [
        scorer.score(reference, text) for text, reference in zip(texts, references, strict=True)
    ]
    return {
        name: float(100 * np.mean([score[name].fmeasure for score in scores]))
        for name in ROUGE_TYPES
    }


def exact_match(texts, references):
    """Share of the texts that are their reference, word for word; blanks between do not count.

    Args:
        texts: list of str. What the model wrote; texts may be empty.
        references: list of str, one a text.

    Returns:
        float in [0, 1].

    Raises:
        ValueError: for other numbers of references, empty references or other types.
    """
    texts, references = check_pairs(texts, references)
    pairs = zip(texts, references, strict=True)
    return float(np.mean([text.split() == reference.split() for text, reference in pairs]))


def bleu_tokenizer(references):
    """sacrebleu's name of the tokenization that suits these references."""
    return {"Han": "zh", "unspaced": "char"}.get(script_of(references), "13a")


def bleu_metric(tokenize="13a"):
    """sacrebleu's metric with the settings above, for sentences and corpora."""
    sacrebleu = _library("sacrebleu.metrics", "sacrebleu")
    # `force` only stops warnings about texts that look tokenised, which generated ones may.
    return sacrebleu.BLEU(lowercase=True, effective_order=True, force=True, tokenize=tokenize)


def rouge_scorer(types=ROUGE_TYPES, references=()):
    """rouge-score's scorer with the settings above."""
    scorer = _library("rouge_score.rouge_scorer", "rouge-score").RougeScorer
    other = references and script_of(references) != "Latin"
    return scorer(list(types), use_stemmer=True, tokenizer=_Words() if other else None)


class _Words:
    """`words` as rouge-score wants a tokenizer."""

    def tokenize(self, text):
        return words(text)


def _library(module, package):
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f'{package} is needed for this figure: pip install "keras-elf[eval]"'
        ) from error
