"""Keras's own LoRA and int8 quantisation reach the Dense layers inside ours."""

import keras
import numpy as np
import pytest

from keras_elf import layers
from tests.layers.alone import VOCABULARY, WIDTH, array, build, randomise


def test_lora_on_an_inner_dense(tmp_path):
    model, block, inputs = build("ELFBlock")
    x = inputs(5)
    before, count = array(model(x)), len(model.variables)
    block.attn.qkv.enable_lora(2)
    assert len(model.variables) == count + 2
    trainable = {v.path.split("/", 1)[1] for v in model.trainable_variables}
    assert {"attn/qkv/lora_kernel_a", "attn/qkv/lora_kernel_b"} < trainable
    assert "attn/qkv/kernel" not in trainable
    # LoRA starts as the layer it adapts, and then acts.
    np.testing.assert_allclose(array(model(x)), before, atol=1e-6)
    block.attn.qkv.lora_kernel_b.assign(np.ones((2, 3 * WIDTH)))
    after = array(model(x))
    assert np.abs(after - before).max() > 1e-3
    # Keras merges the adapter into the kernel that it writes.
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(array(loaded(x)), after, atol=1e-5)


@pytest.mark.slow
def test_int8_stays_close():
    """Tied rows become integers with a scale each, which the logits must not forget."""
    ids = keras.Input((None,), dtype="int32")
    tokens = keras.layers.Embedding(VOCABULARY + 2, WIDTH, name="tokens")
    # One width everywhere: JAX compiles the integer products of each shape anew.
    x = layers.BottleneckTextProj(WIDTH, bottleneck_dim=WIDTH)(tokens(ids))
    x = layers.ELFBlock(WIDTH, num_heads=2, mlp_ratio=1.5)(x)
    logits = layers.TiedUnembedding(VOCABULARY, tied_to=tokens)(x)
    model = randomise(keras.Model(ids, [x, logits]))
    batch = np.array([[1, 2, 3, 4, 5]] * 3)
    exact = [array(y) for y in model(batch)]
    model.quantize("int8")
    integers = [v for v in model.variables if v.dtype == "int8"]
    assert len(integers) == 8  # seven Dense kernels and the table
    for quantised, expected in zip(model(batch), exact, strict=True):
        error = np.linalg.norm(array(quantised) - expected) / np.linalg.norm(expected)
        # int8 is used: the error is neither nothing nor much.
        assert 1e-5 < error < 0.05
