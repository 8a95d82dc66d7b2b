"""Averaged weights, schedules and accumulation that count real optimizer steps."""

import keras
import numpy as np
from keras import ops

from keras_elf.optimizers.conditional import assign_conditionally


class ParameterAveraging:
    """Mixin that makes a Keras optimizer's `use_ema` the average ELF samples from.

    Stock Keras moves the average on every accumulation micro-step, starts it at the weights
    after the first step, reads learning-rate schedules in micro-steps, and at the end of
    `fit` replaces the trained weights by the average. With this mixin

    - the average starts as a copy of the weights the optimizer is built with, and moves once
      an optimizer step: `average <- d average + (1 - d) weights`, d being `ema_momentum`
      (ELF, arXiv 2605.10938: 0.9999);
    - training weights stay what training made them; `average_pairs()` gives the averages to
      whoever wants to use them, and `share_of_start` holds `d**steps`: how much of them is
      still the weights that they started from;
    - learning-rate schedules are read at `iterations`, the number of optimizer steps;
    - with `gradient_accumulation_steps=k` the mean of k gradients is clipped and applied
      once, and a micro-step only adds to the sum, on all backends;
    - `gradient_norm` holds the global norm of the last step's gradient before it was clipped,
      and `first_nonfinite` the number of the first step (from 1, 0 for none) at which that
      norm was not finite. Both stay on the device until they are read.

    Averages are kept in float32 or wider, since a decay of 0.9999 is lost in 16 bits.

    Put it before the optimizer's class:

    ```python
    class Lion(ParameterAveraging, keras.optimizers.Lion):
        pass
    ```

    Limits. Keras wraps the optimizer of a `mixed_float16` model in `LossScaleOptimizer`,
    which hides these methods: use `mixed_bfloat16` or float32. `ema_overwrite_frequency` is
    refused. Do not use `keras.callbacks.SwapEMAWeights` with it: that callback counts on the
    end of `fit` to bring weights and average back. Files of earlier versions lack
    `share_of_start`; it is then made from `iterations`.
    """

    state_was_loaded = False

    def build(self, variables):
        """Create the optimizer's state; averages start as copies of `variables`."""
        if self.built:
            return
        if self.use_ema and self.ema_overwrite_frequency:
            raise ValueError(
                "`ema_overwrite_frequency` must be None: the average is kept apart from the "
                f"weights. Received: {self.ema_overwrite_frequency!r}"
            )
        super().build(variables)
        # Under a strategy of TensorFlow's the first replica's gradient stands for all.
        shared = {"shape": (), "initializer": "zeros", "aggregation": "only_first_replica"}
        self.gradient_norm = self.add_variable(dtype="float32", name="gradient_norm", **shared)
        self.first_nonfinite = self.add_variable(dtype="int", name="first_nonfinite", **shared)
        if self.use_ema:
            self.share_of_start = self.add_variable(
                dtype="float32", name="share_of_start", **{**shared, "initializer": "ones"}
            )

    def average_pairs(self):
        """Return a list of `(variable, average)` pairs, both `keras.Variable`.

        Empty where there is no average: `use_ema=False`, or nothing built yet.
        """
        if not (self.use_ema and self.built):
            return []
        pairs = zip(self._trainable_variables, self._model_variables_moving_average, strict=True)
        return [(variable, average) for variable, average in pairs if average is not None]

    def reset_average(self, trainable_variables=None):
        """Set averages to copies of the present weights.

        For weights replaced after the optimizer was built, by a checkpoint for instance. Call
        it outside `fit`.

        Args:
            trainable_variables: list of `keras.Variable`. Those to reset; builds the optimizer
                if that has not happened. Defaults to all that it was built with.

        Raises:
            ValueError: if nothing is built and no variables are given, or for a variable the
                optimizer was not built with.
        """
        if not self.built:
            if trainable_variables is None:
                raise ValueError(
                    "`trainable_variables` must be given until the optimizer is built. "
                    "Received: None"
                )
            self.build(list(trainable_variables))
        if trainable_variables is None:
            wanted = None
        else:
            self._check_variables_are_known(trainable_variables)
            wanted = {self._get_variable_index(v) for v in trainable_variables}
        for variable, average in self.average_pairs():
            if wanted is None or self._get_variable_index(variable) in wanted:
                average.assign(_copy(variable, average.dtype))
        if wanted is None and self.use_ema:
            self.share_of_start.assign(1.0)

    def load_own_variables(self, store):
        """As in Keras; `state_was_loaded` tells afterwards whether the state was taken."""
        state = {name: store[name] for name in store.keys()}
        if self.built and self.use_ema and len(state) == len(self.variables) - 1:
            steps = int(np.array(state["0"])) // (self.gradient_accumulation_steps or 1)
            state[str(len(state))] = np.float32(self.ema_momentum**steps)
        super().load_own_variables(state)
        self.state_was_loaded = len(state) == len(self.variables)

    def finalize_variable_values(self, var_list):
        """Keep the weights as trained; stock Keras would overwrite them by the average."""

    def add_variable_from_reference(self, reference_variable, name=None, initializer="zeros"):
        if name != "average":
            return super().add_variable_from_reference(reference_variable, name, initializer)
        # As an initializer and not a later `assign`, which would become part of the compiled
        # step where an optimizer is first built inside one.
        dtype = keras.backend.result_type(reference_variable.dtype, "float32")
        return self.add_variable(
            shape=reference_variable.shape,
            initializer=lambda shape, dtype: _copy(reference_variable, dtype),
            dtype=dtype,
            name=f"{reference_variable.path.replace('/', '_')}_average",
            layout=getattr(reference_variable, "_layout", None),
        )

    def _get_current_learning_rate(self):
        schedule = self._learning_rate
        if isinstance(schedule, keras.optimizers.schedules.LearningRateSchedule):
            return schedule(self.iterations)
        return super()._get_current_learning_rate()

    def _backend_apply_gradients(self, grads, trainable_variables):
        pairs = zip(grads, trainable_variables, strict=True)
        grads = [_dense(gradient, variable) for gradient, variable in pairs]
        steps = self.gradient_accumulation_steps
        if not steps:
            self._optimizer_step(grads, trainable_variables)
            return
        sums = [
            self._accumulated_gradients[self._get_variable_index(v)] for v in trainable_variables
        ]

        def step():
            means = [(g + s.value) / steps for g, s in zip(grads, sums, strict=True)]
            self._optimizer_step(means, trainable_variables)
            self._backend_reset_gradient_accumulators()

        assign_conditionally(
            ops.equal((self._iterations + 1) % steps, 0),
            step,
            lambda: self._backend_increment_gradient_accumulators(grads, sums),
            [*self._trainable_variables, *self.variables],
        )

    def _optimizer_step(self, grads, trainable_variables):
        self._keep_norm(grads)
        grads = self._clip_gradients(grads)
        self._apply_weight_decay(trainable_variables)
        self._backend_update_step(grads, trainable_variables, self.learning_rate)
        self._update_model_variables_moving_average(self._trainable_variables)

    def _keep_norm(self, grads):
        squares = [ops.sum(ops.square(ops.cast(gradient, "float32"))) for gradient in grads]
        norm = ops.sqrt(ops.sum(ops.stack(squares)))
        self.assign(self.gradient_norm, norm)
        new = ops.logical_and(ops.equal(self.first_nonfinite, 0), ~ops.isfinite(norm))
        step = ops.cast(self.iterations + 1, self.first_nonfinite.dtype)
        self.assign(self.first_nonfinite, ops.where(new, step, self.first_nonfinite.value))

    def _update_model_variables_moving_average(self, trainable_variables):
        if not self.use_ema:
            return
        averages = self._model_variables_moving_average
        for variable, average in zip(trainable_variables, averages, strict=True):
            if average is not None:
                # One rounding of the small difference, exact where nothing moved.
                difference = ops.cast(variable, average.dtype) - average
                self.assign_add(average, (1.0 - self.ema_momentum) * difference)
        self.assign(self.share_of_start, self.share_of_start * self.ema_momentum)


def _copy(variable, dtype):
    # JAX gives buffers of one training step to the next: two variables must not share one.
    return ops.copy(ops.cast(ops.stop_gradient(variable.value), dtype))


def _dense(gradient, variable):
    # TensorFlow's gradient of a gathered table holds the gathered rows only, and its class
    # has no arithmetic; a moment or a matrix product needs the whole table anyway.
    if type(gradient).__name__ != "IndexedSlices":
        return gradient
    return ops.add(ops.zeros(variable.shape, variable.dtype), gradient)
