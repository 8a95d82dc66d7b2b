"""A loss and the norm of its gradient, on PyTorch and JAX."""

import keras


def loss_and_gradient_norm(function, variables):
    """A loss and the Euclidean norm of its gradient, as the backend computes them."""
    if keras.backend.backend() == "torch":
        import torch

        values = [v.value for v in variables]
        loss = function()
        gradients = torch.autograd.grad(loss, values, allow_unused=True)
        squares = [g.float().square().sum() for g in gradients if g is not None]
        return loss.detach(), torch.stack(squares).sum().sqrt()
    import jax
    import jax.numpy as jnp

    def loss(values):
        with keras.StatelessScope(state_mapping=list(zip(variables, values, strict=True))):
            return function()

    @jax.jit
    def both(values):
        value, gradients = jax.value_and_grad(loss)(values)
        squares = [jnp.sum(jnp.square(g.astype("float32"))) for g in gradients]
        return value, jnp.sqrt(sum(squares))

    return both([v.value for v in variables])
