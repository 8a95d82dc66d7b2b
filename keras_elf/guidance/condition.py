"""Guidance on what the text is conditioned on: given tokens, labels and other signals."""

import keras
from keras import ops

from keras_elf import flow
from keras_elf.guidance.guidance import Guidance


@keras.saving.register_keras_serializable(package="keras_elf")
class ConditionGuidance(Guidance):
    """Away from the prediction that knows no condition.

    The further prediction has zeros at the condition's positions, in the latents and in the
    self-condition, and every signal at its "none". It needs a model that was trained with
    label drop. Published conditional models use a scale of 2.

    Args:
        scale, interval, rescale: see `Guidance`.

    Source: ELF, arXiv 2605.10938 (sampling, guidance on the condition).
    """

    def needs_prediction(self, network, inputs):
        return inputs.condition is not None or bool(inputs.signals)

    def without(self, inputs):
        empty = {
            name: value
            if inputs.empty_signals[name] is None
            else ops.zeros_like(value) + ops.cast(inputs.empty_signals[name], value.dtype)
            for name, value in inputs.signals.items()
        }
        return inputs._replace(
            z=flow.clear(inputs.z, inputs.is_cond),
            self_condition=flow.clear(inputs.self_condition, inputs.is_cond),
            condition=None,
            signals=empty,
        )
