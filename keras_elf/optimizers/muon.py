"""Muon for matrices with Nesterov Adam for everything else, ELF's optimizer."""

import math

import keras
from keras import ops

from keras_elf import checks
from keras_elf.optimizers import arguments
from keras_elf.optimizers.moments import adam_direction, nesterov_momentum
from keras_elf.optimizers.newton_schulz import newton_schulz_grouped
from keras_elf.optimizers.parameter_averaging import ParameterAveraging


@keras.saving.register_keras_serializable(package="keras_elf")
class Muon(ParameterAveraging, keras.optimizers.Muon):
    """Muon for every 2-D variable, Adam with Nesterov momentum for all others.

    Same numbers as `optax.contrib.muon` with its defaults, behind a clip of the global
    gradient norm: the optimizer of ELF (arXiv 2605.10938). The direction of a matrix is its
    bias-corrected Nesterov momentum, orthogonalised in float32 (see `newton_schulz`) and
    multiplied by `sqrt(max(1, columns / rows))`, kernels being `(inputs, outputs)`. Matrices
    of one shape are orthogonalised together, and only on real steps under accumulation.

    It differs from `keras.optimizers.Muon`, whose class it extends: no embedding is left out
    by its name, weights do not decay, updates are not scaled by `0.2 sqrt(max side)`, momenta
    are bias-corrected, and the Adam part uses Nesterov momentum. Averaged weights, schedules
    and accumulation follow `ParameterAveraging`; not for `mixed_float16`, see there.

    Args:
        learning_rate: float, `keras.optimizers.schedules.LearningRateSchedule` (counted in
            optimizer steps) or function without arguments. Defaults to 2e-3, the paper's
            value at batch 512 (see `scaled_learning_rate`).
        momentum: float in [0, 1). Decay rate of the matrices' momentum. Defaults to 0.95.
        ns_steps: integer. Newton-Schulz iterations. Defaults to 5.
        adam_beta_1: float in [0, 1). Defaults to 0.9.
        adam_beta_2: float in [0, 1). Defaults to 0.999.
        epsilon: float. Added to Adam's root of the second moment and to the Frobenius norm of
            a matrix. Defaults to 1e-8.
        weight_decay: float or `None`. Decay of the Muon variables, multiplied by the learning
            rate. Defaults to `None`, none.
        adam_weight_decay: float or `None`. The same for the Adam variables. Defaults to `None`.
        clipnorm: float or `None`. Clip each gradient by its own norm. Defaults to `None`.
        clipvalue: float or `None`. Clip every entry. Defaults to `None`.
        global_clipnorm: float or `None`. Clip all gradients by their common norm. Defaults
            to 1.0.
        use_ema: boolean. Keep averaged weights. Defaults to `True`.
        ema_momentum: float in [0, 1]. Decay of the average an optimizer step. Defaults
            to 0.9999.
        loss_scale_factor: float or `None`. See `keras.optimizers.Optimizer`.
        gradient_accumulation_steps: integer or `None`. Gradients averaged for one optimizer
            step. Defaults to `None`, each gradient is a step.
        exclude_layers: list of strings or `None`. Regular expressions; a matrix whose
            variable path holds a match goes to Adam. Defaults to `None`.
        name: string. Defaults to `"muon"`.

    Raises:
        ValueError: for an argument out of range.

    Example:

    ```python
    optimizer = keras_elf.optimizers.Muon(2e-3, gradient_accumulation_steps=4)
    optimizer.routing(model.trainable_variables, print_fn=print)
    ```
    """

    def __init__(
        self,
        learning_rate=2e-3,
        momentum=0.95,
        ns_steps=5,
        adam_beta_1=0.9,
        adam_beta_2=0.999,
        epsilon=1e-8,
        weight_decay=None,
        adam_weight_decay=None,
        clipnorm=None,
        clipvalue=None,
        global_clipnorm=1.0,
        use_ema=True,
        ema_momentum=0.9999,
        loss_scale_factor=None,
        gradient_accumulation_steps=None,
        exclude_layers=None,
        name="muon",
    ):
        super().__init__(
            momentum=arguments.decay_rate("momentum", momentum),
            ns_steps=checks.integer("ns_steps", ns_steps, minimum=1),
            adam_beta_1=arguments.decay_rate("adam_beta_1", adam_beta_1),
            adam_beta_2=arguments.decay_rate("adam_beta_2", adam_beta_2),
            epsilon=arguments.positive("epsilon", epsilon),
            weight_decay=arguments.weight_decay("weight_decay", weight_decay),
            adam_weight_decay=arguments.weight_decay("adam_weight_decay", adam_weight_decay),
            exclude_layers=arguments.patterns("exclude_layers", exclude_layers),
            exclude_embeddings=False,
            rms_rate=None,
            **arguments.base_arguments(
                learning_rate=learning_rate,
                clipnorm=clipnorm,
                clipvalue=clipvalue,
                global_clipnorm=global_clipnorm,
                use_ema=use_ema,
                ema_momentum=ema_momentum,
                loss_scale_factor=loss_scale_factor,
                gradient_accumulation_steps=gradient_accumulation_steps,
                name=name,
            ),
        )

    def routing(self, variables=None, print_fn=None):
        """Say which variable is updated by which rule.

        Args:
            variables: list of `keras.Variable`. Defaults to those the optimizer was built with.
            print_fn: function of one string, called for each line of a table. Defaults to
                `None`, nothing is printed.

        Returns:
            Dictionary from variable path to `"muon"` or `"adam"`.

        Raises:
            ValueError: if the optimizer is not built and `variables` is not given.
        """
        if variables is None:
            if not self.built:
                raise ValueError(
                    "`variables` must be given until the optimizer is built. Received: None"
                )
            variables = self._trainable_variables
        routes = {v.path: "adam" if self._should_use_adamw(v) else "muon" for v in variables}
        if print_fn is not None:
            for rule in ("muon", "adam"):
                chosen = [v for v in variables if routes[v.path] == rule]
                total = sum(math.prod(v.shape) for v in chosen)
                print_fn(f"{rule}: {len(chosen)} variables, {total:,} parameters")
                for v in chosen:
                    print_fn(f"  {v.path} {tuple(v.shape)}")
        return routes

    def update_step(self, gradient, variable, learning_rate):
        """Update one variable."""
        self._update_variables([gradient], [variable], learning_rate)

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        strategy = getattr(self, "_distribution_strategy", None)
        if strategy is not None and strategy.num_replicas_in_sync > 1:
            # TensorFlow's replicas sum their gradients there, then update one by one.
            super()._backend_update_step(grads, trainable_variables, learning_rate)
        else:
            self._update_variables(grads, trainable_variables, learning_rate)

    def _update_variables(self, grads, variables, learning_rate):
        learning_rate = ops.cast(learning_rate, "float32")
        step = ops.cast(self.iterations + 1, "float32")
        matrices, directions = [], []
        for gradient, variable in zip(grads, variables, strict=True):
            index = self._get_variable_index(variable)
            momentum, velocity = self.momentums[index], self.adam_velocities[index]
            gradient, m = ops.cast(gradient, "float32"), ops.cast(momentum, "float32")
            if velocity is None:
                direction, m = nesterov_momentum(gradient, m, step, self.momentum)
                matrices.append(variable)
                directions.append(direction)
            else:
                v = ops.cast(velocity, "float32")
                betas = self.adam_beta_1, self.adam_beta_2
                direction, m, v = adam_direction(
                    gradient, m, v, step, *betas, self.epsilon, nesterov=True
                )
                self.assign(velocity, ops.cast(v, velocity.dtype))
                self.assign_sub(variable, ops.cast(learning_rate * direction, momentum.dtype))
            self.assign(momentum, ops.cast(m, momentum.dtype))
        directions = newton_schulz_grouped(directions, self.ns_steps, self.epsilon)
        for variable, direction in zip(matrices, directions, strict=True):
            rows, columns = variable.shape
            scale = math.sqrt(max(1.0, columns / rows))
            change = (learning_rate * scale) * direction
            self.assign_sub(variable, ops.cast(change, variable.dtype))

    def get_config(self):
        config = super().get_config()
        return {key: config[key] for key in _CONFIG}


_CONFIG = (
    *("name", "learning_rate", "weight_decay", "adam_weight_decay", "momentum", "ns_steps"),
    *("adam_beta_1", "adam_beta_2", "epsilon", "clipnorm", "clipvalue", "global_clipnorm"),
    *("use_ema", "ema_momentum", "loss_scale_factor", "gradient_accumulation_steps"),
    "exclude_layers",
)
