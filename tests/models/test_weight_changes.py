"""Weights that change outside training: averages must follow them or step aside."""

import numpy as np
import pytest
from keras import ops

from keras_elf.data import TokenBatches
from keras_elf.models import averaged_weights
from keras_elf.optimizers import AdamW
from keras_elf.training import averages as averages_module
from tests.models import small

pytestmark = pytest.mark.filterwarnings("ignore:.*were too long and were cut.*")


def trained(seed=0):
    """A model one optimizer step away from its start, so that averages differ from weights."""
    model = small.generator("gaussian", preprocessor=None)
    model.compile(optimizer=AdamW(0.1, ema_momentum=0.8), run_eagerly=True)
    rng = np.random.default_rng(seed)
    variables = model.trainable_variables
    gradients = [ops.convert_to_tensor(rng.normal(size=v.shape), "float32") for v in variables]
    model.optimizer.build(variables)
    model.optimizer.apply(gradients, variables)
    assert not small.all_equal(small.values(variables), small.averages(model))
    return model


def test_set_weights_is_what_is_used_afterwards():
    model, other = trained(), trained(seed=1)
    model.set_weights(other.get_weights())
    with averaged_weights(model):
        assert small.all_equal(small.values(model.variables), small.values(other.variables))


def test_loaded_weights_are_what_is_used_afterwards(tmp_path):
    other = small.generator("gaussian", preprocessor=None)  # never trained: no averages
    path = tmp_path / "other.weights.h5"
    other.save_weights(path)
    model = trained()
    with pytest.warns(UserWarning):
        model.load_weights(path)
    with averaged_weights(model):
        assert small.all_equal(
            small.values(model.trainable_variables), small.values(other.trainable_variables)
        )


def test_loaded_averages_stay(tmp_path):
    model, again = trained(), trained(seed=1)
    model.save_weights(tmp_path / "whole.weights.h5")
    again.load_weights(tmp_path / "whole.weights.h5")
    assert small.all_equal(small.averages(again), small.averages(model))
    assert small.all_equal(small.values(again.variables), small.values(model.variables))


def test_a_failing_exchange_is_taken_back(monkeypatch):
    model = trained()
    before = small.values(model.variables), small.averages(model)
    calls, copy = [], ops.copy

    def failing(x):
        calls.append(x)
        if len(calls) == 9:
            raise MemoryError("no memory")
        return copy(x)

    monkeypatch.setattr(averages_module.ops, "copy", failing)
    with pytest.raises(MemoryError):
        with averaged_weights(model):
            pytest.fail("the block must not run")
    assert small.all_equal(small.values(model.variables), before[0])
    assert small.all_equal(small.averages(model), before[1])
    with averaged_weights(model):
        assert small.all_equal(small.values(model.trainable_variables), before[1])


def test_replaced_layers_warn_and_leave_the_raw_weights():
    model = trained()
    raw = small.values(model.backbone.blocks[0].norm1.variables)
    model.backbone.quantize("int8")
    with pytest.warns(UserWarning, match="no longer fit"), averaged_weights(model):
        assert small.all_equal(small.values(model.backbone.blocks[0].norm1.variables), raw)


def test_calls_of_fit_go_on_through_the_orders(monkeypatch):
    model, epochs = trained(), []
    batch_of = TokenBatches.batch_of

    def recorded(self, epoch, batch):
        epochs[-1].add(epoch)
        return batch_of(self, epoch, batch)

    monkeypatch.setattr(TokenBatches, "batch_of", recorded)
    ids = np.ones((6, 5), "int32")
    for _ in range(3):
        epochs.append(set())
        model.fit(ids, batch_size=4, epochs=2, initial_epoch=1, verbose=0)
    # The last calls start where the epochs of the ones before have ended.
    assert epochs == [{1}, {2}, {3}]


def test_a_file_name_is_not_a_text():
    with pytest.raises(ValueError, match="`x` must be a list of texts"):
        trained().fit("corpus.txt")
