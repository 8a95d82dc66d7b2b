"""The average against a loop in NumPy, steps counted as the optimizer counts them."""

import keras
import numpy as np
import pytest

from keras_elf.optimizers import AdamW, Muon, ParameterAveraging
from tests.optimizers.stepping import (
    averages_of,
    compiled_step,
    random_gradients,
    values_of,
    variables_from,
    worst_error,
)

ARRAYS = {
    "kernel": np.float32(np.random.default_rng(7).standard_normal((3, 4))),
    "bias": np.float32(np.random.default_rng(8).standard_normal((4,))),
}


class PlainSGD(ParameterAveraging, keras.optimizers.SGD):
    """The mixin on an optimizer that one can follow by hand."""


class Count(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate that is its own step number, 1-based."""

    def __call__(self, step):
        return keras.ops.cast(step, "float32") + 1.0


@pytest.mark.parametrize("steps", [None, 3])
@pytest.mark.parametrize("cls", [Muon, AdamW])
def test_average_moves_once_an_optimizer_step(cls, steps):
    variables = variables_from(ARRAYS)
    optimizer = cls(0.1, ema_momentum=0.9, gradient_accumulation_steps=steps)
    step = compiled_step(optimizer, variables)
    want = values_of(variables)
    for micro, gradients in enumerate(random_gradients(ARRAYS, 12), start=1):
        before = values_of(variables)
        step(gradients)
        moved = [bool((a != b).any()) for a, b in zip(values_of(variables), before, strict=True)]
        real = steps is None or micro % steps == 0
        assert moved == [real, real]
        if real:
            want = [0.9 * a + 0.1 * w for a, w in zip(want, values_of(variables), strict=True)]
        assert worst_error(averages_of(optimizer), want) < 1e-6
    assert worst_error(averages_of(optimizer), values_of(variables)) > 1e-3


@pytest.mark.parametrize("cls", [Muon, AdamW])
def test_accumulated_gradients_are_one_large_batch(cls):
    """The mean is clipped, not each part: single norms here are far above the mean's."""
    micro = random_gradients(ARRAYS, 12, scale=0.5)
    large = [
        [np.mean(parts, axis=0) for parts in zip(*micro[i : i + 4], strict=True)]
        for i in range(0, 12, 4)
    ]
    ends = []
    for gradients, steps in ((micro, 4), (large, None)):
        variables = variables_from(ARRAYS)
        optimizer = cls(
            Count(), global_clipnorm=0.7, ema_momentum=0.9, gradient_accumulation_steps=steps
        )
        step = compiled_step(optimizer, variables)
        for g in gradients:
            step(g)
        assert int(keras.ops.convert_to_numpy(optimizer.iterations)) == 3
        ends.append(values_of(variables) + averages_of(optimizer))
    assert worst_error(*ends) < 2e-6


@pytest.mark.parametrize("steps", [None, 2])
def test_learning_rate_is_counted_in_optimizer_steps(steps):
    variables = variables_from(ARRAYS)
    optimizer = PlainSGD(Count(), gradient_accumulation_steps=steps)
    step = compiled_step(optimizer, variables)
    for _ in range(3 * (steps or 1)):
        step([np.ones_like(a) for a in ARRAYS.values()])
    want = [a - (1 + 2 + 3) for a in ARRAYS.values()]
    assert worst_error(values_of(variables), want) < 1e-6
    assert float(optimizer.learning_rate) == 4.0
    assert optimizer.average_pairs() == []


def test_missing_gradient_under_accumulation():
    """Its accumulator stays empty, its average stays at the weight, the others go on."""
    variables = variables_from(ARRAYS)
    optimizer = Muon(0.1, ema_momentum=0.5, gradient_accumulation_steps=2)
    optimizer.build(variables)
    for gradients in random_gradients(ARRAYS, 2):
        with pytest.warns(UserWarning, match="Gradients do not exist"):
            optimizer.apply([keras.ops.array(gradients[0]), None])
    (kernel, average), (bias, bias_average) = optimizer.average_pairs()
    start = list(ARRAYS.values())
    assert worst_error(values_of([bias, bias_average]), [start[1], start[1]]) == 0
    half = (start[0] + kernel.numpy()) / 2
    assert worst_error(values_of([average]), [half]) < 1e-6 < worst_error([half], [start[0]])


def test_reset_average():
    variables = variables_from(ARRAYS)
    optimizer = Muon(0.1, ema_momentum=0.5)
    with pytest.raises(ValueError, match="`trainable_variables` must be given"):
        optimizer.reset_average()
    optimizer.reset_average(variables)
    step = compiled_step(optimizer, variables)
    for variable in variables:
        variable.assign(variable + 5.0)
    optimizer.reset_average(variables[:1])
    errors = [np.abs(v.numpy() - a.numpy()).max() for v, a in optimizer.average_pairs()]
    assert errors[0] == 0 and errors[1] == pytest.approx(5.0)
    optimizer.reset_average()
    loaded = values_of(variables)
    assert worst_error(averages_of(optimizer), loaded) == 0
    # The compiled step gives buffers away: it fails here if the two were one.
    step(random_gradients(ARRAYS, 1)[0])
    want = [(a + w) / 2 for a, w in zip(loaded, values_of(variables), strict=True)]
    assert worst_error(averages_of(optimizer), want) < 1e-6
    with pytest.raises(ValueError, match="Unknown variable"):
        optimizer.reset_average([keras.Variable(np.ones(2))])


def test_average_starts_at_the_weights_when_built_inside_a_compiled_step():
    if keras.backend.backend() != "tensorflow":
        pytest.skip("only TensorFlow may create variables inside a compiled function")
    import tensorflow as tf

    variables = variables_from(ARRAYS)
    optimizer = PlainSGD(1.0, use_ema=True, ema_momentum=0.5)
    step = tf.function(lambda grads: optimizer.apply(grads, variables))
    for _ in range(2):
        step([tf.ones_like(a) for a in ARRAYS.values()])
    # Weights w, w - 1, w - 2 with halves: w, w - 1/2, w - 5/4.
    assert worst_error(averages_of(optimizer), [a - 1.25 for a in ARRAYS.values()]) < 1e-6


def test_overwriting_the_weights_is_refused():
    optimizer = PlainSGD(1.0, use_ema=True, ema_overwrite_frequency=2)
    with pytest.raises(ValueError, match="`ema_overwrite_frequency` must be None"):
        optimizer.build(variables_from(ARRAYS))


def test_micro_steps_do_no_update_work_on_jax():
    """Every product of Newton-Schulz lies inside the branch of the real step."""
    if keras.backend.backend() != "jax":
        pytest.skip("the other backends branch in Keras itself")
    import jax
    from jax.extend.core import jaxprs_in_params

    variables = variables_from(ARRAYS)
    optimizer = Muon(0.1, gradient_accumulation_steps=2)
    optimizer.build(variables)
    state = [v.value for v in optimizer.variables]
    values = [v.value for v in variables]
    jaxpr = jax.make_jaxpr(optimizer.stateless_apply)(state, values, values).jaxpr

    def products(jaxpr, skip=()):
        count = 0
        for equation in jaxpr.eqns:
            count += equation.primitive.name == "dot_general"
            if equation.primitive.name in skip:
                continue
            for inner in jaxprs_in_params(equation.params):
                count += products(inner, skip)
        return count

    assert products(jaxpr, skip=("cond",)) == 0
    assert products(jaxpr) == 15
