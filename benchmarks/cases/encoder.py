"""The frozen encoders: a T5 of random weights, and one of the kind that users train."""

import numpy as np

from benchmarks import flops, sizes
from benchmarks.cases import Variant

ABOUT = "encoding a batch: a T5 (T5-small at width 512), and an encoder of ELF's own blocks"


def variants(settings):
    size = settings.shape
    rows, length = size.batch, size.length
    ids = sizes.batch(size)["token_ids"]
    mask = np.ones(ids.shape, "bool")
    heads, depth = size.t5()["num_heads"], min(4, size.depth)

    def make(build):
        import keras

        import keras_elf

        encoder = build(keras_elf.encoders)
        encoder.freeze()
        run = keras_elf.models.compiled(
            lambda ids, mask: encoder(ids, attention_mask=mask), encoder.variables
        )
        arguments = [keras.ops.convert_to_tensor(x) for x in (ids, mask)]
        return lambda: run(*arguments)

    def t5(encoders):
        return encoders.T5Encoder(**size.t5(), dtype=settings.dtype)

    def trained(encoders):
        return encoders.TransformerEncoder(
            size.vocabulary_size, size.latent_dim, depth, heads, dtype=settings.dtype
        )

    return {
        "T5": Variant(
            lambda: make(t5), flops.t5(size.t5(), rows, length), size.tokens, memory=False
        ),
        "TransformerEncoder": Variant(
            lambda: make(trained),
            flops.transformer_encoder(size, rows, length, depth),
            size.tokens,
            memory=False,
        ),
    }
