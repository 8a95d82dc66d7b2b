"""Generative perplexity, never without the entropy that it must be read with."""

import dataclasses

import numpy as np

from keras_elf.evaluation.entropy import entropies
from keras_elf.evaluation.judges import DEFAULT_JUDGE, load_judge
from keras_elf.evaluation.texts import check_texts


@dataclasses.dataclass(frozen=True)
class JudgedTexts:
    """Figures of texts under a judge.

    Attributes:
        perplexity: float. `exp(nats / tokens)` over all texts together.
        unigram_entropy: float. Mean entropy of a text's tokens, in nats.
        num_texts: int.
        num_tokens: int. Tokens that were scored, over all texts.
        mean_length: float. The judge's tokens in a text, its end token not counted.
    """

    perplexity: float
    unigram_entropy: float
    num_texts: int
    num_tokens: int
    mean_length: float


def generative_perplexity(texts, judge=DEFAULT_JUDGE, *, batch_size=8, max_length=None):
    """Perplexity of generated text under a language model, with its unigram entropy.

    The texts are tokenised anew by the judge's own tokenizer and closed with its end token.
    Each token is predicted from those before it, none from before the text; all tokens but the
    first are counted, end tokens once. The perplexity is the exponential of all nats divided by
    all counted tokens, so long texts weigh more. It does not depend on the batch size or on
    padding. Texts longer than the judge's context are scored in windows that overlap by half a
    context. No gradient is recorded.

    A low perplexity means nothing by itself: text that repeats itself gets the lowest. Read it
    beside the entropy, and compare only figures of one judge, one length and one number of
    texts.

    Example:

    ```python
    texts = elf.generate(num_samples=1000, seed=0)
    keras_elf.evaluation.generative_perplexity(texts, "gpt2_large_en")
    ```

    Args:
        texts: list of str, none empty.
        judge: see `load_judge`. Defaults to `"gpt2_large_en"`, the published judge.
        batch_size, max_length: see `load_judge`; what it returned has its own.

    Returns:
        `JudgedTexts`, with `perplexity` and `unigram_entropy`.

    Raises:
        ValueError: for no texts, empty texts or texts of one token, a judge that cannot be used
            (see `load_judge`), or one that gives NaN.

    Source: ELF, arXiv 2605.10938 (evaluation).
    """
    texts = check_texts("texts", texts)
    judge = load_judge(judge, batch_size=batch_size, max_length=max_length)
    rows = judge.token_ids(texts)
    for index, row in enumerate(rows):
        if len(row) < 2:
            raise ValueError(
                "`texts` must have two tokens or more, as the first of a text cannot be "
                f"predicted. Received: {texts[index]!r:.80} at index {index}, which has "
                f"{len(row)} under the judge {judge.name!r}"
            )
    nats, counts = judge.negative_log_likelihood(rows)
    return JudgedTexts(
        perplexity=float(np.exp(nats.sum() / counts.sum())),
        unigram_entropy=float(entropies(rows).mean()),
        num_texts=len(rows),
        num_tokens=int(counts.sum()),
        mean_length=float(np.mean([len(row) for row in rows])),
    )
