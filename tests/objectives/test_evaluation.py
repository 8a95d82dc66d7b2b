"""An evaluation says the same whatever the batches; its draws belong to the rows."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_elf.objectives import ELFObjective, RowSeedGenerator, TimeBins
from tests.models import small

ROWS = 16


@pytest.fixture(scope="module")
def model():
    objective = ELFObjective(terms=[TimeBins(2)])
    model = small.generator("gaussian", network={"hidden_size": 8}, objective=objective)
    small.enliven(model)
    model.compile(optimizer=keras.optimizers.SGD(0.01), jit_compile=small.BACKEND == "jax")
    return model


def evaluate(model, x, **kwargs):
    return model.evaluate(x, verbose=0, return_dict=True, **kwargs)


class Uneven(keras.utils.PyDataset):
    """Batches of different sizes, as a stream may have them."""

    def __init__(self, x, sizes):
        super().__init__()
        self.x, self.ends = x, np.cumsum([0, *sizes])

    def __len__(self):
        return len(self.ends) - 1

    def __getitem__(self, index):
        return {k: v[self.ends[index] : self.ends[index + 1]] for k, v in self.x.items()}


def test_the_batch_size_does_not_show(model):
    x = small.rows(ROWS)
    # Rows differ in how many positions count, so means of batches would differ as well.
    assert len(set(x["is_valid"].sum(axis=1).tolist())) > 3
    whole = evaluate(model, x, batch_size=ROWS)
    for data, size in ((x, 4), (x, 8), (Uneven(x, (5, 11)), None)):
        found = evaluate(model, data, batch_size=size)
        assert set(found) == set(whole) >= {"loss", "denoise_loss", "decode_loss"}
        for name, value in whole.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-5, err_msg=name)
    # Rows draw by their place: another order is another evaluation.
    other = evaluate(model, {k: v[::-1] for k, v in x.items()}, batch_size=8)
    assert abs(other["denoise_loss"] / whole["denoise_loss"] - 1) > 1e-3


def test_validation_in_fit_says_the_same(model):
    x = small.rows(ROWS)
    kwargs = {"batch_size": 8, "epochs": 2, "verbose": 0, "validation_data": x}
    history = model.fit(x, **kwargs).history
    after = evaluate(model, x, batch_size=4)
    for name, value in after.items():
        np.testing.assert_allclose(history[f"val_{name}"][-1], value, rtol=1e-5, err_msg=name)
    # The loss of a training is the one of its own steps.
    assert history["loss"][-1] != history["val_loss"][-1]
    want = 0.2 * history["decode_loss"][0] + 0.8 * history["denoise_loss"][0]
    # Batches differ in how many positions count, so the two means do a little.
    np.testing.assert_allclose(history["loss"][0], want, rtol=0.15)


def test_roles_of_rows_follow_the_probabilities():
    objective, seeds = ELFObjective(decode_probability=0.3), RowSeedGenerator(0)
    draws = []
    for batch in (20, 20, 20):
        with seeds.rows(batch):
            draws.append(objective.draw((batch, 2, 3), seeds))
    draws = [keras.tree.map_structure(ops.convert_to_numpy, one) for one in draws]
    decode, own = (
        np.concatenate([one[name] for one in draws]) for name in ("is_decode", "use_self_condition")
    )
    assert abs(decode.sum() - 18) <= 1 and abs(own[~decode].sum() - 21) <= 2
    with RowSeedGenerator(0).rows(60) as seeds:
        at_once = objective.draw((60, 2, 3), seeds)
    for name, value in at_once.items():
        cut = np.concatenate([one[name] for one in draws])
        # A backend may round the last bit by a number's place in a tensor.
        np.testing.assert_allclose(ops.convert_to_numpy(value), cut, rtol=1e-5, err_msg=name)
    assert abs(ops.convert_to_numpy(at_once["noise"]).std() - 1) < 0.15


def test_outside_of_rows_it_is_an_ordinary_generator():
    seeds = RowSeedGenerator(3)
    one, two = (keras.random.uniform((4,), seed=seeds) for _ in range(2))
    plain = keras.random.uniform((4,), seed=keras.random.SeedGenerator(3))
    np.testing.assert_array_equal(ops.convert_to_numpy(one), ops.convert_to_numpy(plain))
    assert not np.array_equal(ops.convert_to_numpy(one), ops.convert_to_numpy(two))
    with seeds.rows(4):
        inside = [ops.convert_to_numpy(keras.random.uniform((4,), seed=seeds)) for _ in range(2)]
    assert not np.array_equal(*inside)
