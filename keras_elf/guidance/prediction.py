"""One guided prediction: all that the rules ask for runs as one batch."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_elf import flow
from keras_elf.guidance.guidance import DenoiserInputs


class Prediction(NamedTuple):
    """What a sampler learns about the clean latents at one time.

    Attributes:
        clean: float32 `(batch, length, width)`. Guided prediction, the condition in place.
        velocity: float32, same shape. The velocity that leads there.
        unguided: float32, same shape. The prediction before any guidance acted; `clean`
            itself where none did.
        without: tuple of float32 tensors, the further predictions in the order of the rules.
    """

    clean: Any
    velocity: Any
    unguided: Any
    without: tuple = ()


def guided_prediction(predict, inputs, t, rules, min_time_gap=flow.MIN_TIME_GAP):
    """Predicted clean latents with guidance, condition positions in place.

    Every rule extrapolates in clean latents. That equals doing it in velocities, as all
    predictions share z and t. Later rules of the list are combined first.

    Args:
        predict: `(DenoiserInputs of any number of rows, t) -> clean latents`.
        inputs: `DenoiserInputs`, the condition in place.
        t: float32 scalar tensor.
        rules: list of pairs `(Guidance, tensor of its scale or None)`: those that ask for a
            further prediction now.
        min_time_gap: float. Floor under `1 - t` in the velocity.

    Returns:
        `Prediction`.

    Source: ELF, arXiv 2605.10938 (sampling, guidance).
    """
    asked = [inputs]
    for rule, _ in rules:
        others = [rule.without(one) for one in asked]
        for other in others:
            if not isinstance(other, DenoiserInputs):
                raise ValueError(
                    f"`without` of the guidance {type(rule).__name__} must return the inputs with "
                    f"something taken out, `inputs._replace(...)`. Received: {type(other).__name__}"
                )
        asked += others
    predictions = _predicted(predict, asked, t)
    unguided, without = predictions[0], tuple(predictions[1:])
    for rule, given in reversed(rules):
        half = len(predictions) // 2
        predictions = [
            rule.apply(guided, other, t, given, inputs.is_cond)
            for guided, other in zip(predictions[:half], predictions[half:], strict=True)
        ]
        _check_shapes(rule, predictions, inputs.z)
    clean = predictions[0]
    if inputs.condition is not None:
        clean = flow.pin(clean, inputs.condition, inputs.is_cond)
    velocity = flow.velocity(clean, inputs.z, t, min_time_gap)
    return Prediction(clean, velocity, unguided, without)


def _check_shapes(rule, predictions, z):
    for made in predictions:
        if tuple(made.shape) != tuple(z.shape):
            raise ValueError(
                f"`combine` of the guidance {type(rule).__name__} must return clean latents, shape "
                f"{tuple(z.shape)}. Received shape: {tuple(made.shape)}"
            )


def _predicted(predict, asked, t):
    if len(asked) == 1:
        return [predict(asked[0], t)]
    stacked = asked[0]._replace(
        condition=None,
        is_cond=None,
        **{
            name: keras.tree.map_structure(
                lambda *parts: ops.concatenate(parts, axis=0), *(getattr(a, name) for a in asked)
            )
            for name in ("z", "self_condition", "signals")
        },
    )
    return list(ops.split(predict(stacked, t), len(asked), axis=0))
