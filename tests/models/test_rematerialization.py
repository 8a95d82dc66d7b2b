"""Blocks computed again for their gradient: the same numbers from less memory."""

import gc

import keras
import numpy as np
import pytest
from keras import ops

from tests.gradients import ValueAndGradients
from tests.models import small

Z = np.random.default_rng(0).standard_normal((2, 5, small.LATENT_DIM)).astype("float32")


def network(**overrides):
    keras.utils.set_random_seed(3)
    return small.backbone(depth=2, **overrides)


def loss_of(backbone):
    def loss(z):
        hidden = backbone.hidden_states(z, 0.4, z, guidance_scale=2.0, training=True)
        return ops.mean(ops.square(hidden - 1.0))

    return ValueAndGradients(loss, backbone.trainable_variables)


def test_same_loss_and_gradients():
    plain, again = network(), network(rematerialize=True)
    again.set_weights(plain.get_weights())
    loss, gradients = loss_of(plain)(Z)
    loss_again, gradients_again = loss_of(again)(Z)
    assert loss_again == pytest.approx(loss, rel=1e-6)
    assert any(np.abs(g).max() > 1e-3 for g in gradients)
    for one, other in zip(gradients, gradients_again, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-7)


def kept_bytes(backbone):
    """What a backward pass will need, beside the variables."""
    if small.BACKEND == "torch":
        import torch

        sizes = {}
        own = {v.value.data_ptr() for v in backbone.variables}

        def pack(x):
            if x.data_ptr() not in own:
                sizes[x.data_ptr()] = x.numel() * x.element_size()
            return x

        z = ops.convert_to_tensor(Z)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            backbone.hidden_states(z, 0.4, z, guidance_scale=2.0, training=True)
        return sum(sizes.values())
    import jax

    def hidden(values, z):
        mapping = list(zip(backbone.trainable_variables, values, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            return backbone.hidden_states(z, 0.4, z, guidance_scale=2.0, training=True)

    values = [v.value for v in backbone.trainable_variables]
    _, pullback = jax.vjp(hidden, values, Z)
    return sum(x.nbytes for x in jax.tree.leaves(pullback))


@pytest.mark.skipif(small.BACKEND == "tensorflow", reason="tells nobody what it keeps")
def test_keeps_less():
    assert kept_bytes(network(rematerialize=True)) < 0.7 * kept_bytes(network())


def test_blocks_with_dropout_are_left_out():
    # Depth 4: dropout is in the two middle blocks.
    backbone = small.backbone(depth=4, dropout=0.5, rematerialize=True)
    assert [block.draws for block in backbone.blocks] == [False, True, True, False]
    loss, gradients = loss_of(backbone)(Z)
    assert np.isfinite(loss) and all(np.isfinite(g).all() for g in gradients)


def test_setting_is_saved():
    config = network(rematerialize=True).get_config()
    assert type(network()).from_config(config).rematerialize is True
    del config["rematerialize"]  # Written before there was one.
    assert type(network()).from_config(config).rematerialize is False


@pytest.mark.skipif(small.BACKEND != "torch", reason="ends no computation by an exception")
def test_what_was_computed_again_is_not_kept_by_exceptions():
    from torch.utils.checkpoint import _StopRecomputationError

    def exceptions():
        return sum(type(o) is _StopRecomputationError for o in gc.get_objects())

    step = loss_of(network(rematerialize=True))
    step(Z)
    gc.collect()
    gc.disable()
    try:
        step(Z)
        assert exceptions() == 0
    finally:
        gc.enable()
    assert keras.config.is_traceback_filtering_enabled()
