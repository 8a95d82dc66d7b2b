"""AdamW with the settings of ELF's optimizer ablation."""

import keras
from keras import ops

from keras_elf.optimizers import arguments
from keras_elf.optimizers.moments import adam_direction
from keras_elf.optimizers.parameter_averaging import ParameterAveraging


@keras.saving.register_keras_serializable(package="keras_elf")
class AdamW(ParameterAveraging, keras.optimizers.AdamW):
    """AdamW as ELF's ablation uses it, with averaged weights.

    Same numbers as `optax.adamw` behind a clip of the global gradient norm: epsilon is added
    to the bias-corrected root (stock Keras adds it before the correction), and the decay is
    multiplied by the learning rate. ELF (arXiv 2605.10938) trains with `Muon` and compares it
    with this one. Averaged weights, schedules and accumulation follow `ParameterAveraging`;
    not for `mixed_float16`, see there.

    Args:
        learning_rate: float, `keras.optimizers.schedules.LearningRateSchedule` (counted in
            optimizer steps) or function without arguments. Defaults to 1e-3.
        weight_decay: float. Multiplied by the learning rate and the weights, then taken from
            the weights. Defaults to 0.0, as with `Muon`.
        beta_1: float in [0, 1). Decay rate of the first moment. Defaults to 0.9.
        beta_2: float in [0, 1). Decay rate of the second moment. Defaults to 0.95.
        epsilon: float. Added to the root of the second moment. Defaults to 1e-8.
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
        name: string. Defaults to `"adamw"`.

    Raises:
        ValueError: for an argument out of range.
    """

    def __init__(
        self,
        learning_rate=1e-3,
        weight_decay=0.0,
        beta_1=0.9,
        beta_2=0.95,
        epsilon=1e-8,
        clipnorm=None,
        clipvalue=None,
        global_clipnorm=1.0,
        use_ema=True,
        ema_momentum=0.9999,
        loss_scale_factor=None,
        gradient_accumulation_steps=None,
        name="adamw",
    ):
        super().__init__(
            weight_decay=arguments.weight_decay("weight_decay", weight_decay) or 0.0,
            beta_1=arguments.decay_rate("beta_1", beta_1),
            beta_2=arguments.decay_rate("beta_2", beta_2),
            epsilon=arguments.positive("epsilon", epsilon),
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

    def update_step(self, gradient, variable, learning_rate):
        """Update one variable."""
        index = self._get_variable_index(variable)
        momentum, velocity = self._momentums[index], self._velocities[index]
        direction, m, v = adam_direction(
            ops.cast(gradient, "float32"),
            ops.cast(momentum, "float32"),
            ops.cast(velocity, "float32"),
            ops.cast(self.iterations + 1, "float32"),
            self.beta_1,
            self.beta_2,
            self.epsilon,
            nesterov=False,
        )
        self.assign(momentum, ops.cast(m, momentum.dtype))
        self.assign(velocity, ops.cast(v, velocity.dtype))
        change = ops.cast(learning_rate, "float32") * direction
        self.assign_sub(variable, ops.cast(change, momentum.dtype))

    def get_config(self):
        config = super().get_config()
        return {key: config[key] for key in _CONFIG}


_CONFIG = (
    *("name", "learning_rate", "weight_decay", "beta_1", "beta_2", "epsilon"),
    *("clipnorm", "clipvalue", "global_clipnorm", "use_ema", "ema_momentum"),
    *("loss_scale_factor", "gradient_accumulation_steps"),
)
