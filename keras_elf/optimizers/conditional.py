"""A conditional whose branches may assign to variables, on every backend."""

import keras
from keras import ops


def assign_conditionally(predicate, on_true, on_false, variables):
    """Run one of two functions that assign to `variables`; the other one costs nothing.

    JAX traces both branches as pure functions, so there each runs on a private copy of the
    variables' values and the chosen values are assigned afterwards.

    Args:
        predicate: boolean scalar tensor.
        on_true: function without arguments and without a result.
        on_false: function without arguments and without a result.
        variables: list of `keras.Variable`. All that either function reads or assigns.
    """
    if keras.backend.backend() != "jax":
        ops.cond(predicate, on_true, on_false)
        return
    before = [(variable, variable.value) for variable in variables]

    def pure(branch):
        def run():
            with keras.StatelessScope(state_mapping=before) as scope:
                branch()
            return [scope.get_current_value(variable) for variable in variables]

        return run

    after = ops.cond(predicate, pure(on_true), pure(on_false))
    for variable, value in zip(variables, after, strict=True):
        variable.assign(value)
