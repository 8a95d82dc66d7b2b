"""Generative perplexity against NumPy, and what it must not depend on."""

import keras
import numpy as np
import pytest

from keras_elf.evaluation import generative_perplexity, load_judge, unigram_entropy
from keras_elf.evaluation.windows import counted, windows
from tests.evaluation import tiny_judge

TEXTS = [
    "the man and the dog of the land",
    "a word",
    "In the beginning God created",
    "and the the the and the",
]
END = 0


@pytest.fixture(scope="module")
def model():
    return tiny_judge.judge()


@pytest.fixture(scope="module")
def judge(model):
    return load_judge(model, batch_size=4)


def layer_norm(x, norm):
    gamma, beta = (keras.ops.convert_to_numpy(w).astype("float64") for w in norm.weights)
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * gamma + beta


def gpt2_logits(model, ids):
    """GPT-2 of one layer in float64 NumPy, from the weights alone, one text, no padding."""
    weights = {w.path: keras.ops.convert_to_numpy(w).astype("float64") for w in model.weights}

    def get(end):
        (found,) = [value for path, value in weights.items() if path.endswith(end)]
        return found

    def dense(x, name):
        kernel, bias = get(f"{name}/kernel"), get(f"{name}/bias")
        return x @ kernel.reshape(x.shape[-1], -1) + bias.reshape(-1)

    table = get("token_embedding/embeddings")
    x = table[ids] + get("position_embedding/embeddings")[: len(ids)]
    layer = model.backbone.transformer_layers[0]
    h = layer_norm(x, layer._self_attention_layer_norm)
    q, k, v = (dense(h, name).reshape(len(ids), 2, -1) for name in ("query", "key", "value"))
    scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(q.shape[-1])
    scores = np.where(np.tril(np.ones(scores.shape[1:])) > 0, scores, -np.inf)
    attention = np.exp(scores - scores.max(-1, keepdims=True))
    attention /= attention.sum(-1, keepdims=True)
    mixed = np.einsum("hqk,khd->qhd", attention, v).reshape(len(ids), -1)
    x = x + dense(mixed, "attention_output")
    h = layer_norm(x, layer._feedforward_layer_norm)
    h = dense(h, "feedforward_intermediate_dense")
    h = 0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
    x = x + dense(h, "feedforward_output_dense")
    return layer_norm(x, model.backbone.layer_norm) @ table.T


def nats(model, ids):
    """`-log p` of each token after the first, float64."""
    logits = gpt2_logits(model, ids[:-1])
    logits = logits - logits.max(-1, keepdims=True)
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return -logs[np.arange(len(ids) - 1), ids[1:]]


def test_equals_numpy(model, judge):
    rows = tiny_judge.tokenizer().tokenize(TEXTS)
    losses = [nats(model, [*row, END]) for row in rows]
    result = generative_perplexity(TEXTS, judge)
    expected = np.exp(sum(map(np.sum, losses)) / sum(map(len, losses)))
    assert result.perplexity == pytest.approx(expected, rel=1e-4)
    # Every token but the first, and the end token.
    assert result.num_tokens == sum(map(len, rows)) == sum(map(len, losses))
    assert result.num_texts == 4 and result.mean_length == sum(map(len, rows)) / 4
    entropy = []
    for row in rows:
        shares = np.array([row.count(i) for i in set(row)]) / len(row)
        entropy.append(-(shares * np.log(shares)).sum())
    assert result.unigram_entropy == pytest.approx(np.mean(entropy))
    assert result.unigram_entropy == pytest.approx(unigram_entropy(TEXTS, judge.tokenizer))


def test_does_not_depend_on_batches_or_padding(model, judge):
    rows = judge.token_ids(TEXTS)
    together, counts = judge.negative_log_likelihood(rows)
    for i, row in enumerate(rows):
        alone, count = judge.negative_log_likelihood([row])
        assert alone[0] == pytest.approx(together[i], rel=1e-5) and count[0] == counts[i]
    again, _ = judge.negative_log_likelihood(rows[::-1] + rows)
    np.testing.assert_allclose(again[:4][::-1], together, rtol=1e-5)


def test_long_texts_are_scored_in_windows(model, judge):
    text = " ".join(TEXTS * 2)
    (row,) = judge.token_ids([text])
    assert len(row) > 2 * tiny_judge.CONTEXT
    ids = [*row, END]
    expected = 0.0
    for start, first, stop in windows(len(ids), tiny_judge.CONTEXT):
        expected += nats(model, ids[start:stop])[first - start - 1 :].sum()
    found, count = judge.negative_log_likelihood([row])
    assert count[0] == len(row)
    assert found[0] == pytest.approx(expected, rel=1e-4)


def test_end_tokens_count_once(model, judge):
    ids = judge.token_ids(["a<|endoftext|>b<|endoftext|>"])[0]
    assert ids[1] == ids[3] == END
    losses = nats(model, [*ids, END])
    found, count = judge.negative_log_likelihood([ids])
    assert count[0] == 2
    assert found[0] == pytest.approx(losses[:2].sum(), rel=1e-4)


def test_a_preset_directory_is_a_judge(model, judge, tmp_path):
    model.save_to_preset(str(tmp_path / "judge"))
    result = generative_perplexity(TEXTS[:1], tmp_path / "judge", batch_size=1)
    assert result.perplexity == pytest.approx(
        generative_perplexity(TEXTS[:1], judge).perplexity, rel=1e-5
    )


def test_half_precision_judges_have_float32_losses(judge):
    half = load_judge(tiny_judge.judge(dtype="bfloat16"), batch_size=4)
    assert half.describe()["dtype"] == "bfloat16"
    rows = half.token_ids(TEXTS[1:2])
    ids = np.array([*rows[0], END])
    # What the summed figures are made of, in the one shape that is compiled here.
    losses = half._losses([ids], [(0, 0, 1, len(ids))], 1, 16)
    assert losses.dtype == "float32" and len(np.unique(losses[0, : len(ids) - 1])) > 4
    found, expected = (j.negative_log_likelihood(rows)[0] for j in (half, judge))
    assert found[0] == pytest.approx(losses[0, : len(ids) - 1].sum(), rel=1e-5)
    np.testing.assert_allclose(found, expected, rtol=0.03)


def test_a_judge_that_gives_nan():
    broken = tiny_judge.judge()
    broken.backbone.token_embedding.embeddings.assign(
        np.full(broken.backbone.token_embedding.embeddings.shape, np.nan, "float32")
    )
    with pytest.raises(ValueError, match="gave nan as the log-likelihood of text 0, in float32"):
        generative_perplexity(["a text"], broken)


def test_windows_cover_each_token_once():
    for context in (2, 3, 8):
        for num_tokens in range(2, 40):
            seen = []
            for start, first, stop in windows(num_tokens, context):
                assert 0 <= start < first < stop <= start + context + 1
                assert first - start >= min(first, context // 2)
                # A later window uses the whole context.
                assert start == 0 or stop - start == context + 1
                seen += range(first, stop)
            assert seen == list(range(1, num_tokens))


def test_counted():
    assert counted([5, 6, 0], 0).tolist() == [False, True, True]
    assert counted([5, 0, 6, 0], 0).tolist() == [False, True, True, False]
    # An end token at the start is the first one, though it is not scored.
    assert counted([0, 6, 0], 0).tolist() == [False, True, False]
