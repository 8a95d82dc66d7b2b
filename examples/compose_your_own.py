"""Compose ELF's layers into a model of your own: an embedding-space denoiser in one graph.

    KERAS_BACKEND=torch python examples/compose_your_own.py

A token table gives the latents, ELF blocks see them noised at time t behind context tokens,
and an unembedding tied to the same table reads tokens off. Takes under a minute on 2 cores;
prints a loss that falls slowly from about ln(256) = 5.5 nats.
"""

import os

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np

from keras_elf import layers

VOCABULARY, LENGTH, WIDTH = 256, 16, 32

token_ids = keras.Input((LENGTH,), dtype="int32")
noise = keras.Input((LENGTH, WIDTH))
t = keras.Input(())
table = keras.layers.Embedding(VOCABULARY, WIDTH)
clean = table(token_ids)
time = keras.ops.reshape(t, (-1, 1, 1))
z = time * clean + (1.0 - time) * noise

x = layers.BottleneckTextProj(64, bottleneck_dim=16)(z)
x, prefix_length = layers.ContextPrefix(64, num_guidance_tokens=0)(x, t)
for _ in range(2):
    x = layers.ELFBlock(64, num_heads=2)(x, prefix_length=prefix_length)
logits = layers.TiedUnembedding(VOCABULARY, tied_to=table)(x[:, prefix_length:])

model = keras.Model([token_ids, noise, t], logits)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
rng = np.random.default_rng(0)
ids = (rng.integers(0, VOCABULARY, (512, 1)) + np.arange(LENGTH)) % VOCABULARY
inputs = [ids.astype("int32"), rng.normal(size=(512, LENGTH, WIDTH)), rng.uniform(size=512)]
model.fit(inputs, ids, batch_size=64, epochs=5, verbose=2)
