"""Streamed batches get the checks of data in memory, whatever library they come from."""

import keras
import numpy as np
import pytest

from tests.models import small

pytestmark = pytest.mark.filterwarnings("ignore:.*were too long and were cut.*")
STEPS = 3


def batches(change=None, at=1):
    """Three good batches, of which one may be changed by a function."""
    rows = small.rows(STEPS * small.BATCH)
    out = []
    for i in range(STEPS):
        part = slice(i * small.BATCH, (i + 1) * small.BATCH)
        batch = {name: np.array(array[part]) for name, array in rows.items()}
        out.append(change(batch) if change is not None and i == at else batch)
    return out


class Data(keras.utils.PyDataset):
    """A `PyDataset` that counts its epochs."""

    def __init__(self, items, **kwargs):
        super().__init__(**kwargs)
        self.items, self.epochs = items, 0

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]

    def on_epoch_end(self):
        self.epochs += 1


def as_torch(items):
    torch = pytest.importorskip("torch")
    return torch.utils.data.DataLoader(items, batch_size=None)


def as_grain(items):
    return pytest.importorskip("grain").MapDataset.source(items)


def as_tf(items):
    tf = pytest.importorskip("tensorflow")

    def spec(leaf):
        leaf = np.asarray(leaf)
        return tf.TensorSpec([None] * leaf.ndim, leaf.dtype)

    signature = keras.tree.map_structure(spec, items[0])
    return tf.data.Dataset.from_generator(lambda: iter(items), output_signature=signature)


FORMS = {
    "generator": lambda items: (item for item in items),
    "iterator": iter,
    "PyDataset": Data,
    "workers": lambda items: Data(items, workers=2),
    "tf": as_tf,
    "grain": as_grain,
    "torch": as_torch,
}


def ids_with(value):
    def change(batch):
        batch["token_ids"][2, 3] = value
        return batch

    return change


@pytest.fixture(scope="module")
def model():
    made = small.generator("gaussian")
    # What is compiled is not what this is about, and TensorFlow traces each form of data anew.
    made.compile(optimizer=small.muon(), run_eagerly=small.BACKEND == "tensorflow")
    return made


@pytest.mark.parametrize("form", list(FORMS))
def test_an_id_outside_the_vocabulary_is_named(model, form):
    before = small.values(model.trainable_variables)
    rows = small.rows(small.BATCH)
    for value in (small.VOCABULARY_SIZE, -1):
        for call in (model.evaluate, model.predict):
            with pytest.raises(
                ValueError, match=rf"Batch 1: .*\[0, 200\).*{value} at index \[2, 3"
            ):
                call(FORMS[form](batches(ids_with(value))), verbose=0)
    with pytest.raises(ValueError, match=r"Batch \d: .*\[0, 200\).*200 at index \[2, 3\]"):
        x = FORMS[form](batches(ids_with(200), at=0))
        model.fit(x, verbose=0, shuffle=False, validation_data=rows)
    assert small.all_equal(before, small.values(model.trainable_variables))
    with pytest.raises(ValueError, match=r"Batch 1: .*\[0, 200\).*200 at index \[2, 3\]"):
        x = FORMS[form](batches(ids_with(200)))
        model.fit(rows, verbose=0, validation_data=x, batch_size=small.BATCH)


@pytest.mark.parametrize("form", list(FORMS))
def test_good_batches_train_in_every_form(model, form):
    history = model.fit(FORMS[form](batches()), verbose=0, shuffle=False).history
    assert np.isfinite(history["loss"]).all()
    evaluated = model.evaluate(FORMS[form](batches()), verbose=0, return_dict=True)
    expected = model.evaluate(
        small.rows(STEPS * small.BATCH), batch_size=small.BATCH, verbose=0, return_dict=True
    )
    # With workers Keras serves batches in an order of its own, and draws go with the order.
    close = 0.1 if form == "workers" else 1e-4
    np.testing.assert_allclose(evaluated["loss"], expected["loss"], rtol=close)


@pytest.mark.parametrize("form", list(FORMS))
def test_an_empty_dataset_is_said_to_be_empty(model, form):
    empty = FORMS[form]([]) if form != "tf" else as_tf(batches()).take(0)
    for call in (model.fit, model.evaluate):
        with pytest.raises(ValueError, match="The dataset is empty"):
            call(empty, verbose=0)
    if form == "tf":
        with pytest.raises(ValueError, match="The dataset is empty"):
            model.fit(as_tf(batches()).filter(lambda batch: False), verbose=0)


def _without(name):
    return lambda batch: {k: v for k, v in batch.items() if k != name}


def _with(**values):
    return lambda batch: {**batch, **values}


@pytest.mark.parametrize(
    "change, message",
    [
        (_without("token_ids"), r"Batch \d: A batch as a dict must have the key 'token_ids'"),
        (_with(words=np.zeros(6)), r"Batch \d: `x` has unknown keys \['words'\]"),
        (_with(token_ids=np.ones((6, 12))), r"Batch \d: `token_ids` must be whole .* float64"),
        (_with(token_ids=np.ones(6, "int32")), r"Batch \d: .*\(rows, length\).*\(6,\)"),
        (_with(is_valid=np.ones((6, 11), "bool")), r"`is_valid` .*\(6, 12\).*\(6, 11\)"),
        (lambda batch: (batch, np.zeros(6)), r"Batch \d: `y` must be None.*ndarray of shape"),
        (lambda batch: (batch, None, np.ones(5)), r"`sample_weight` .*\(6,\).*\(5,\)"),
        (lambda batch: (batch, None, np.full(6, -1.0)), "`sample_weight` must be finite and >= 0"),
        (lambda batch: (batch, None, None, 1), "tuple of 4"),
    ],
)
def test_what_does_not_fit_is_refused(model, change, message):
    bad = change(batches()[0])
    for form in ("generator", "PyDataset"):
        for call in (model.fit, model.evaluate, model.predict):
            with pytest.raises(ValueError, match=message):
                call(FORMS[form]([bad] * STEPS), verbose=0)
    if isinstance(bad, dict):
        for call in (model.train_on_batch, model.test_on_batch, model.predict_on_batch):
            with pytest.raises(ValueError, match=message.replace(r"Batch \d: ", "")):
                call(bad)


def test_epochs_and_length_are_those_of_the_dataset(model):
    data = Data(batches())
    steps = []
    watch = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: steps.append(batch)
    )
    model.fit(data, epochs=2, verbose=0, callbacks=[watch])
    assert steps == [0, 1, 2, 0, 1, 2] and data.epochs >= 2


@pytest.mark.parametrize("form", ["generator", "PyDataset", "torch"])
def test_batches_of_text_are_taken(model, form):
    texts = small.texts(STEPS * small.BATCH)
    items = [texts[i::STEPS] for i in range(STEPS)]
    taken = model.evaluate(FORMS[form](items), verbose=0, return_dict=True)
    rows = [dict(model.preprocessor(item)) for item in items]
    expected = model.evaluate(Data(rows), verbose=0, return_dict=True)
    np.testing.assert_allclose(taken["loss"], expected["loss"], rtol=1e-5)
    assert np.isfinite(model.train_on_batch(items[0], return_dict=True)["loss"])


def test_text_without_a_preprocessor():
    on_ids = small.generator("gaussian", preprocessor=None)
    with pytest.raises(ValueError, match="Batch 0: This model has no preprocessor"):
        on_ids.fit((["And", "it"] for _ in range(2)), verbose=0)


def test_weights_of_rows(model):
    """In memory, streamed and for a single batch: rows of weight 0 do not count."""
    rows = small.rows(2 * small.BATCH)
    weight = np.repeat([1.0, 0.0], small.BATCH)
    settings = {"verbose": 0, "return_dict": True}
    inside = model.evaluate(rows, batch_size=small.BATCH, sample_weight=weight, **settings)
    parts = [{k: v[i : i + small.BATCH] for k, v in rows.items()} for i in (0, small.BATCH)]
    streamed = [(x, None, w) for x, w in zip(parts, np.split(weight, 2), strict=True)]
    outside = model.evaluate((batch for batch in streamed), **settings)
    np.testing.assert_allclose(inside["denoise_loss"], outside["denoise_loss"], rtol=1e-5)
    for form in ("PyDataset", "torch", "grain"):
        outside = model.evaluate(FORMS[form](streamed), **settings)
        np.testing.assert_allclose(inside["denoise_loss"], outside["denoise_loss"], rtol=1e-5)
    only = model.evaluate(parts[0], batch_size=small.BATCH, **settings)
    np.testing.assert_allclose(inside["denoise_loss"], only["denoise_loss"], rtol=1e-5)
    model.fit(rows, batch_size=small.BATCH, sample_weight=weight, validation_split=0.5, verbose=0)
    with pytest.raises(ValueError, match=r"`sample_weight` must be .*\(12,\).*\(11,\)"):
        model.fit(rows, sample_weight=weight[1:], verbose=0)
    before = small.values(model.backbone.trainable_variables)
    model.compile(optimizer=keras.optimizers.SGD(1.0))
    model.train_on_batch(parts[0], sample_weight=np.zeros(small.BATCH))
    assert small.all_equal(before, small.values(model.backbone.trainable_variables))


def test_arguments_that_would_be_ignored_are_refused(model):
    rows = small.rows(small.BATCH)
    for kwargs, message in (
        (dict(validation_split=0.2, validation_data=rows), "Only one of `validation_split` and"),
        (dict(class_weight={0: 1.0}), "`class_weight` must be None"),
        (dict(y=np.zeros(6)), "`y` must be None"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(rows, verbose=0, **kwargs)
    for kwargs in (dict(validation_split=0.2), dict(sample_weight=np.ones(6))):
        with pytest.raises(ValueError, match="needs `x` in memory"):
            model.fit(Data(batches()), verbose=0, **kwargs)
    with pytest.raises(ValueError, match="`class_weight` must be None"):
        model.train_on_batch(rows, class_weight={0: 1.0})
    with pytest.raises(ValueError, match="a PyTorch DataLoader or an iterator.*builtins.object"):
        model.fit(object(), verbose=0)


def test_a_single_batch_is_not_trained_on_in_float16():
    half = small.generator("gaussian", network=dict(dtype="mixed_float16"))
    rows = small.rows(small.BATCH)
    for call in (half.fit, half.train_on_batch):
        with pytest.raises(ValueError, match="float16 has too little range"):
            call(rows)
