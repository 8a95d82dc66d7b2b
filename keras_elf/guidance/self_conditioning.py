"""Guidance on the network's own last prediction."""

import keras
from keras import ops

from keras_elf import denoiser, flow
from keras_elf.guidance.guidance import Guidance


@keras.saving.register_keras_serializable(package="keras_elf")
class SelfConditioningGuidance(Guidance):
    """Away from the prediction that knows no earlier one.

    A network that reads the scale was trained to give the guided prediction by itself: it is
    told the scale, and no further prediction is needed. Others are asked a second time with
    an empty self-condition. Published models use 3 for web text and 1 for conditional tasks.

    Args:
        scale, interval, rescale: see `Guidance`. `rescale` acts only where there is a second
            prediction.

    Source: ELF, arXiv 2605.10938 (self-conditioning guidance).
    """

    def needs_prediction(self, network, inputs):
        return not denoiser.takes_guidance_scale(network)

    def informs(self, network):
        return denoiser.takes_guidance_scale(network)

    def without(self, inputs):
        empty = ops.zeros_like(inputs.z)
        if inputs.condition is not None:
            empty = flow.pin(empty, inputs.condition, inputs.is_cond)
        return inputs._replace(self_condition=empty)
