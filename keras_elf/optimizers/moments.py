"""The running moments that Muon and Adam share, as pure functions on tensors."""

from keras import ops


def bias_correction(beta, step):
    """Return `1 - beta**step`, the share of a zero-started average that is real data.

    Args:
        beta: float. Decay rate of the average, in [0, 1).
        step: float32 scalar tensor. Number of values averaged so far, 1 or more.

    Returns:
        float32 scalar tensor.
    """
    return 1.0 - ops.power(ops.cast(beta, "float32"), step)


def nesterov_momentum(gradient, momentum, step, beta):
    """Return `(direction, momentum)` after one Nesterov step with bias correction.

    `momentum <- beta momentum + (1 - beta) gradient`, and the direction looks one step ahead:
    `beta momentum / (1 - beta^(k+1)) + (1 - beta) gradient / (1 - beta^k)`, k being `step`.

    Args:
        gradient: float32 tensor.
        momentum: float32 tensor. The average before this step.
        step: float32 scalar tensor. The 1-based number of this optimizer step.
        beta: float. Decay rate of the average.

    Returns:
        Two float32 tensors of the gradient's shape.
    """
    momentum = beta * momentum + (1.0 - beta) * gradient
    ahead = (beta / bias_correction(beta, step + 1.0)) * momentum
    return ahead + ((1.0 - beta) / bias_correction(beta, step)) * gradient, momentum


def adam_direction(gradient, momentum, velocity, step, beta_1, beta_2, epsilon, nesterov):
    """Return `(direction, momentum, velocity)` of one Adam step.

    The direction is `m / (sqrt(v) + epsilon)` with both moments bias-corrected, so that
    `epsilon` is compared with the size of a gradient at every step. (Keras's own Adam adds it
    to the uncorrected root, a larger epsilon in the first steps.)

    Args:
        gradient: float32 tensor.
        momentum: float32 tensor. First moment before this step.
        velocity: float32 tensor. Second moment before this step.
        step: float32 scalar tensor. The 1-based number of this optimizer step.
        beta_1: float. Decay rate of the first moment.
        beta_2: float. Decay rate of the second moment.
        epsilon: float. Added to the root of the second moment.
        nesterov: boolean. Whether the first moment looks one step ahead.

    Returns:
        Three float32 tensors of the gradient's shape.
    """
    if nesterov:
        ahead, momentum = nesterov_momentum(gradient, momentum, step, beta_1)
    else:
        momentum = beta_1 * momentum + (1.0 - beta_1) * gradient
        ahead = momentum / bias_correction(beta_1, step)
    velocity = beta_2 * velocity + (1.0 - beta_2) * ops.square(gradient)
    root = ops.sqrt(velocity / bias_correction(beta_2, step))
    return ahead / (root + epsilon), momentum, velocity
