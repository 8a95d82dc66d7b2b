"""Guidance while sampling: combining predictions with and without what guides."""

from keras import ops

from keras_elf import flow


def guided_clean(
    predict, z, self_condition, t, condition, is_cond, guidance_scale, self_cond_guidance_scale
):
    """Predicted clean latents with guidance, condition positions in place.

    Both guidances extrapolate from the prediction without to the one with, `u + c (g - u)`.
    In clean latents that equals doing it in velocities, as both share z and t. All
    predictions of a step run as one enlarged batch.

    Args:
        predict: `(z, self_condition, t) -> x_pred` of the network, any number of rows.
        z, self_condition: float32 tensors `(batch, length, width)`.
        t: float32 scalar.
        condition: like `z`, or `None`.
        is_cond: `(batch, length)` or `None`.
        guidance_scale: scalar tensor for guidance on the condition, or `None` for none.
        self_cond_guidance_scale: scalar tensor for guidance on self-conditioning by two
            predictions (networks without guidance tokens), or `None` for none.

    Returns:
        float32 tensor like `z`.

    Source: ELF, arXiv 2605.10938 (sampling, guidance).
    """
    inputs = [(z, self_condition)]
    if guidance_scale is not None:
        inputs.append((flow.clear(z, is_cond), flow.clear(self_condition, is_cond)))
    if self_cond_guidance_scale is not None:
        empty = ops.zeros_like(z)
        pinned = empty if condition is None else flow.pin(empty, condition, is_cond)
        # The pass without a condition has none in its empty self-condition either.
        empties = [pinned, empty][: len(inputs)]
        inputs += [(z_in, no_sc) for (z_in, _), no_sc in zip(inputs, empties, strict=True)]
    if len(inputs) == 1:
        x = predict(z, self_condition, t)
    else:
        stacked = (ops.concatenate(parts, axis=0) for parts in zip(*inputs, strict=True))
        predictions = ops.split(predict(*stacked, t), len(inputs), axis=0)
        if self_cond_guidance_scale is not None:
            half = len(predictions) // 2
            predictions = [
                without + self_cond_guidance_scale * (with_ - without)
                for with_, without in zip(predictions[:half], predictions[half:], strict=True)
            ]
        x = predictions[0]
        if guidance_scale is not None:
            x = predictions[1] + guidance_scale * (x - predictions[1])
    return x if condition is None else flow.pin(x, condition, is_cond)
