"""What rows may hold, in each form in which `fit` takes them: one list of names for all."""

import numpy as np
import pytest

from keras_elf.data import TokenBatches, encode_texts, pack_documents
from keras_elf.layers import LabelSignal, ModeSignal, ScaleSignal, TimeSignal
from keras_elf.training.inputs import evaluation_batches, to_rows
from tests.models import small

pytestmark = pytest.mark.filterwarnings("ignore:.*were too long and were cut.*")


def documents(number):
    rng = np.random.default_rng(0)
    return [rng.integers(3, small.VOCABULARY_SIZE, rng.integers(3, 9)) for _ in range(number)]


@pytest.fixture(scope="module")
def labelled():
    context = [TimeSignal(), ScaleSignal(), ModeSignal(), LabelSignal(num_classes=5)]
    model = small.generator("gaussian", network={"context_signals": context})
    model.seen = []
    compute_loss = model.compute_loss

    def watched(x=None, *args, **kwargs):
        model.seen.append((x["label"], x["token_ids"]))
        return compute_loss(x, *args, **kwargs)

    object.__setattr__(model, "compute_loss", watched)
    model.compile(optimizer=small.muon(), run_eagerly=True)
    return model


def test_fit_takes_what_pack_documents_makes():
    model = small.generator("gaussian")
    model.compile(optimizer=small.muon())
    packed = list(pack_documents(documents(30), small.LENGTH, end_id=1))
    stacked = {key: np.stack([row[key] for row in packed]) for key in packed[0]}
    rows = to_rows(model, packed)
    assert set(rows) == {"token_ids", "is_cond", "is_valid", "segments"}
    assert all(np.array_equal(rows[key], stacked[key]) for key in rows)
    assert rows["segments"].dtype == "int32" and rows["segments"].max() > 0
    history = model.fit(packed, batch_size=4, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    assert np.isfinite(model.evaluate(stacked, batch_size=4, verbose=0)).all()
    with pytest.raises(ValueError, match="`segments` must have the shape of token_ids"):
        to_rows(model, {**stacked, "segments": stacked["segments"][:, :-1]})


@pytest.mark.parametrize("form", ["text", "pairs", "ids", "batches"])
def test_values_of_rows_reach_the_loss(labelled, form):
    texts, labels = small.texts(12), np.arange(12) % 5
    x = {"target": texts, "label": labels}
    if form == "pairs":
        x = {**x, "condition": texts}
    if form in ("ids", "batches"):
        tokenizer = labelled.preprocessor.tokenizer
        x = {**encode_texts(texts, tokenizer, small.LENGTH), "label": labels}
    rows = to_rows(labelled, x)
    assert rows["label"].dtype == "int32" and np.array_equal(rows["label"], labels)
    labelled.seen.clear()
    if form == "batches":
        labelled.fit(TokenBatches(x, 4), verbose=0)
    else:
        labelled.fit(x, batch_size=4, verbose=0)
    # Whatever the order, each row comes with its own label.
    pairs = {(tuple(row), int(label)) for row, label in zip(rows["token_ids"], labels, strict=True)}
    found = set()
    for seen_labels, ids in labelled.seen:
        seen_labels, ids = small.values([seen_labels, ids])
        found |= {(tuple(row), int(n)) for row, n in zip(ids, seen_labels, strict=True)}
    assert found == pairs
    batch = evaluation_batches(labelled, x, 5)[0]
    assert np.array_equal(batch["label"], labels[:5])


@pytest.mark.parametrize(
    "change, message",
    [
        ({"labels": [1, 2]}, r"unknown keys \['labels'\]. Allowed: \['target', 'condition', 'la"),
        ({"label": [1]}, "`label` must be 2 numbers, one a row"),
        ({"label": [[1], [2]]}, "`label` must be 2 numbers, one a row"),
        ({"label": ["one", "two"]}, "`label` must be 2 numbers, one a row"),
        ({"label": [1.0, np.nan]}, "`label` must be finite"),
        ({"label": [1, 2**40]}, "`label` must be finite and fit int32"),
    ],
)
def test_refused(labelled, change, message):
    with pytest.raises(ValueError, match=message):
        labelled.fit({"target": ["a text", "another"], **change})


def test_names_that_the_network_does_not_read():
    model = small.generator("gaussian")
    with pytest.raises(ValueError, match=r"unknown keys \['label'\]. Allowed: \['target', 'cond"):
        model.fit({"target": ["a text"], "label": [1]})
    with pytest.raises(ValueError, match=r"unknown keys \['label'\]. Allowed: \['token_ids', 'is"):
        model.fit({"token_ids": np.ones((2, 12), "int32"), "label": [1, 2]})
