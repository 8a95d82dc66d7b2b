"""A run whose settings `fit` chose goes on in another process with the rates that it had."""

import pytest
from keras import ops

from keras_elf.callbacks import ResumableCheckpoint
from keras_elf.objectives import ELFObjective
from tests.callbacks.runs import BATCHES, Curve, rows
from tests.models import small


def automatic(**compiled):
    # One pass of the network a step: less to compile.
    objective = ELFObjective(self_conditioning_probability=0)
    model = small.generator("gaussian", network={"hidden_size": 8}, objective=objective)
    small.enliven(model, 0.1)
    model.compile(jit_compile=small.BACKEND == "jax", **compiled)
    return model


def fit(model, *callbacks, epochs=2):
    model.fit(rows(), epochs=epochs, batch_size=small.BATCH, callbacks=list(callbacks), verbose=0)


@pytest.mark.parametrize("by_hand", [False, True], ids=["by fit", "by hand"])
def test_a_second_run_goes_on_in_its_own_schedule(tmp_path, by_hand):
    whole, first, second = Curve(), Curve(3), Curve()
    model = automatic()
    fit(model, epochs=1)
    fit(model, whole, ResumableCheckpoint(tmp_path / "whole"))

    model = automatic()
    fit(model, epochs=1)
    fit(model, first, ResumableCheckpoint(tmp_path / "cut"))
    model = automatic()  # Which has made no step, as in a new process.
    checkpoint = ResumableCheckpoint(tmp_path / "cut", resume=not by_hand)
    if by_hand:
        checkpoint.restore(model)
    fit(model, second, checkpoint)
    schedule = model.optimizer._learning_rate
    assert schedule.first_step == BATCHES
    assert first.steps + second.steps == whole.steps
    # A schedule that had begun at step 0 would be near its end here, at a lower rate.
    step = BATCHES + 4
    assert float(schedule(step)) > 2 * float(
        type(schedule).from_config({**schedule.get_config(), "first_step": 0})(step)
    )
    assert ops.convert_to_numpy(model.optimizer.iterations) == 3 * BATCHES


def test_a_run_of_another_length_is_refused(tmp_path):
    fit(automatic(), Curve(3), ResumableCheckpoint(tmp_path))
    with pytest.raises(ValueError, match="other settings: optimizer"):
        fit(automatic(), ResumableCheckpoint(tmp_path, resume=True), epochs=4)
    by_hand = ResumableCheckpoint(tmp_path)
    model = automatic()
    by_hand.restore(model)
    with pytest.raises(ValueError, match="other settings: optimizer"):
        fit(model, by_hand, epochs=4)
