"""Names inside Keras that `keras_elf.optimizers` relies on: loud here, before silent there."""

import inspect

import keras
import pytest

from keras_elf.optimizers import Muon, ParameterAveraging

SIGNATURES = {
    "_backend_apply_gradients": ["self", "grads", "trainable_variables"],
    "_backend_increment_gradient_accumulators": ["self", "grads", "acc_grads"],
    "_backend_reset_gradient_accumulators": ["self"],
    "_backend_update_step": ["self", "grads", "trainable_variables", "learning_rate"],
    "_update_model_variables_moving_average": ["self", "trainable_variables"],
    "_get_current_learning_rate": ["self"],
    "_clip_gradients": ["self", "grads"],
    "_apply_weight_decay": ["self", "variables"],
    "_get_variable_index": ["self", "variable"],
    "_check_variables_are_known": ["self", "variables"],
    "finalize_variable_values": ["self", "var_list"],
    "add_variable_from_reference": ["self", "reference_variable", "name", "initializer"],
    "update_step": ["self", "gradient", "variable", "learning_rate"],
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_methods(name):
    method = getattr(keras.optimizers.Optimizer, name)
    assert list(inspect.signature(method).parameters) == SIGNATURES[name]


def test_attributes():
    optimizer = Muon(gradient_accumulation_steps=2)
    variable = keras.Variable([[1.0, 2.0]], name="kernel")
    optimizer.build([variable])
    for name in ("_iterations", "_learning_rate", "_trainable_variables"):
        assert hasattr(optimizer, name), name
    for name in ("_model_variables_moving_average", "_accumulated_gradients"):
        assert len(getattr(optimizer, name)) == 1, name
    for name in ("momentums", "adam_velocities"):
        assert len(getattr(optimizer, name)) == 1, name
    assert optimizer._should_use_adamw(variable) is False


def test_keras_calls_what_the_mixin_overrides():
    """`apply` must go through the one method, and `fit` must end in the other."""
    calls = []

    class Spy(ParameterAveraging, keras.optimizers.SGD):
        def _backend_apply_gradients(self, grads, trainable_variables):
            calls.append("apply")
            super()._backend_apply_gradients(grads, trainable_variables)

        def add_variable_from_reference(self, reference_variable, name=None, initializer="zeros"):
            calls.append(name)
            return super().add_variable_from_reference(reference_variable, name, initializer)

    variable = keras.Variable([1.0, 2.0], name="bias")
    optimizer = Spy(1.0, use_ema=True)
    optimizer.apply([keras.ops.ones(2)], [variable])
    assert calls == ["average", "apply"]
    optimizer.finalize_variable_values([variable])
    assert keras.ops.convert_to_numpy(variable.value).tolist() == [0.0, 1.0]
