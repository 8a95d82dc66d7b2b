"""The two losses per position, and means over the positions that count."""

from keras import ops


def velocity_error(v, target):
    """Mean squared error over the latent width: `(batch, length)`, float32."""
    return ops.mean(ops.square(v - target), axis=-1)


def cross_entropy(logits, token_ids):
    """Cross-entropy in nats of the ids under the logits: `(batch, length)`, float32.

    Args:
        logits: float tensor `(batch, length, vocabulary)`.
        token_ids: int tensor `(batch, length)`.
    """
    logits = ops.cast(logits, "float32")
    chosen = ops.take_along_axis(logits, ops.cast(token_ids, "int32")[..., None], axis=-1)
    return ops.logsumexp(logits, axis=-1) - chosen[..., 0]


def masked_sum(values, weights):
    """`(sum of weighted values, sum of weights)`, float32 scalars."""
    weights = ops.cast(weights, "float32")
    return ops.sum(values * weights), ops.sum(weights)


def ratio(total, count):
    """`total / count`, 0 where nothing counts."""
    return total / ops.where(count > 0, count, 1.0)
