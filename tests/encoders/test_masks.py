import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_elf.encoders.masks import encoder_attention_mask

CONDITIONAL = [
    "jax/train_cond_denoise",
    "jax/train_cond_drop_denoise",
    "jax/train_cond_drop_decode",
    "torch/train_mixed_cond_drop",
]
UNCONDITIONAL = [
    "jax/train_uncond_denoise",
    "jax/train_uncond_decode",
    "torch/train_mixed_uncond",
]


def as_numpy(x):
    return keras.ops.convert_to_numpy(x)


@pytest.mark.parametrize("name", CONDITIONAL + UNCONDITIONAL)
def test_equals_the_public_mask_before_label_drop(reference, name):
    batch = reference(name)
    mask = encoder_attention_mask(batch["in/cond_seq_mask"], batch["in/attention_mask"])
    assert keras.backend.standardize_dtype(mask.dtype) == "bool"
    np.testing.assert_array_equal(as_numpy(mask), batch["in/encoder_attention_mask"] > 0)


@pytest.mark.parametrize("name", CONDITIONAL[:3] + UNCONDITIONAL[:2])
def test_gives_the_public_latents_after_label_drop(reference, name):
    # The public run's encoder is a toy that mixes the visible columns evenly.
    batch = reference(name)
    dropped = batch["in/label_drop_mask"] if batch["label_drop_prob"] > 0 else None
    mask = encoder_attention_mask(batch["in/cond_seq_mask"], batch["in/attention_mask"], dropped)
    mask = as_numpy(mask).astype("float32")
    mask /= np.maximum(mask.sum(-1, keepdims=True), 1)
    embedded = batch["in/encoder_table"][batch["in/input_ids"]]
    latents = 0.2 * (embedded + mask @ embedded)
    x0 = (latents - batch["latent_mean"]) / batch["latent_std"]
    np.testing.assert_allclose(x0, batch["x0"], atol=2e-6)


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_equals_the_rule_spelled_out(data):
    batch, length = 2, 5
    rows = st.lists(
        st.lists(st.booleans(), min_size=length, max_size=length), min_size=batch, max_size=batch
    )
    is_cond, is_valid = np.array(data.draw(rows)), np.array(data.draw(rows))
    dropped = np.array(data.draw(rows))[:, 0]
    segments = np.array(data.draw(rows)).astype("int32")
    mask = as_numpy(encoder_attention_mask(is_cond, is_valid, dropped, segments))
    for b in range(batch):
        for q in range(length):
            for k in range(length):
                sees = is_valid[b, k] and segments[b, q] == segments[b, k]
                if is_cond[b, q]:
                    sees = sees and is_cond[b, k]
                elif dropped[b]:
                    sees = sees and not is_cond[b, k]
                assert mask[b, q, k] == sees


def test_wrong_shapes_are_named():
    good = np.ones((2, 4), "bool")
    with pytest.raises(ValueError, match="`is_valid` must have shape"):
        encoder_attention_mask(good, np.ones((2, 4, 1), "bool"))
    with pytest.raises(ValueError, match="`is_cond`"):
        encoder_attention_mask(np.ones((2, 3), "bool"), good)
    with pytest.raises(ValueError, match="`dropped`"):
        encoder_attention_mask(good, good, dropped=good)
    with pytest.raises(ValueError, match="`segments`"):
        encoder_attention_mask(good, good, segments=np.ones((4,), "int32"))
