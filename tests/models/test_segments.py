"""Packed documents that do not see each other in the encoder."""

import keras
import numpy as np

from keras_elf.data import load_dataset
from tests.models import small


def test_packed_documents_train_as_if_alone():
    model = small.generator()
    texts = ["abc", "in the beginning", "a b c"]
    data = load_dataset(texts, model.preprocessor, batch_size=1, shuffle=False, segments=True)
    batch = data[0]
    assert batch["segments"].max() >= 1
    clean = keras.ops.convert_to_numpy(model(batch)["clean"])[0]
    seen = keras.ops.convert_to_numpy(model({"token_ids": batch["token_ids"]})["clean"])[0]
    first = batch["segments"][0] == 0
    alone = {k: v[:, first] for k, v in batch.items()}
    alone = keras.ops.convert_to_numpy(model(alone)["clean"])[0]
    np.testing.assert_allclose(clean[first], alone, atol=1e-5)
    assert np.abs(seen[first] - alone).max() > 1e-2
    history = model.fit(data, verbose=0, shuffle=False).history
    assert np.isfinite(history["loss"]).all()
    # Rows with and without segments may follow each other.
    plain = load_dataset(texts, model.preprocessor, batch_size=1, shuffle=False)
    assert np.isfinite(model.evaluate(plain, verbose=0, return_dict=True)["loss"])
