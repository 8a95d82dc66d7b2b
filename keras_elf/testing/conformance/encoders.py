"""What a text encoder must do for the model that lives in its latent space."""

import numpy as np
from keras import ops

from keras_elf.encoders import TextEncoder
from keras_elf.testing.conformance import common
from keras_elf.testing.conformance.common import expect, expect_equal
from keras_elf.testing.gradients import ValueAndGradients

ROWS, LENGTH, HALF = 2, 6, 3


def check_encoder(encoder):
    """Raise an error that says what is wrong where an encoder does not keep the contract.

    A copy with random weights is looked at, `encoder` stays as it is. What is checked: the
    interface; saving; finite float32 latents, of rows that may see nothing as well; that tokens
    which may not see each other do not influence each other, so that packed and padded texts are
    encoded as if they stood alone; no dropout; freezing, with which no gradient gets in.

    Args:
        encoder: a small `keras_elf.encoders.TextEncoder`.

    Raises:
        ValueError: for what is no `TextEncoder`.
        AssertionError: for everything else.
    """
    if not isinstance(encoder, TextEncoder):
        raise ValueError(
            f"`encoder` must be a keras_elf.encoders.TextEncoder. Received: {encoder!r:.200}"
        )
    name = type(encoder).__name__
    expect(
        encoder.built and encoder.variables,
        f"{name} must make its variables in the constructor and end it with `self.seal()`",
    )
    copy = common.randomised(common.same_weights(encoder, common.copied(encoder)))
    _check_latents(copy, name)
    _check_masks(copy, name)
    _check_freezing(copy, name)


def _ids(encoder, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, encoder.vocabulary_size, (ROWS, LENGTH)).astype("int32")


def _check_latents(encoder, name):
    ids = _ids(encoder)
    latents = encoder(ids)
    common.expect_tensor(latents, (ROWS, LENGTH, encoder.latent_dim), f"Latents of {name}")
    twin = common.same_weights(encoder, common.copied(encoder))
    expect_equal(
        latents,
        twin(ids),
        f"{name} gives other latents when it is made from its config and given the same weights: "
        "an argument is missing in `get_config`",
    )
    for training in (False, True):
        expect_equal(
            latents,
            encoder(ids, training=training),
            f"{name} is not the same with training={training}: an encoder knows no dropout and "
            "draws nothing",
        )
    expect_equal(
        latents[:1], encoder(ids[:1]), f"A row of {name} depends on the other rows of its batch"
    )
    last = np.full((1, 2), encoder.vocabulary_size - 1, "int32")
    common.expect_tensor(
        encoder(last), (1, 2, encoder.latent_dim), f"Latents of the last id of {name}"
    )
    expect(
        common.apart(latents, encoder((ids + 1) % encoder.vocabulary_size)) > 1e-6,
        f"{name} gives the same latents whatever the tokens",
    )
    table = encoder.token_embedding
    if table is not None:
        rows, width = table.embeddings.shape
        expect(
            rows >= encoder.vocabulary_size and width == encoder.latent_dim,
            f"`token_embedding` of {name} must hold a row of width latent_dim for each id, as an "
            f"unembedding may be tied to it. Received shape: {(rows, width)}",
        )


def _check_masks(encoder, name):
    ids, changed = _ids(encoder), _ids(encoder, seed=1)
    changed[:, :HALF] = ids[:, :HALF]
    halves = np.tile(np.kron(np.eye(2), np.ones((HALF, HALF))), (ROWS, 1, 1)).astype("bool")
    columns = np.arange(LENGTH) < np.full((ROWS, 1), HALF)
    packed = encoder(ids, halves)
    advice = "apply `attention_mask` wherever a token looks at others"
    expect_equal(
        packed[:, :HALF],
        encoder(changed, halves)[:, :HALF],
        f"Tokens that may not see each other influence each other in {name}: {advice}",
    )
    expect_equal(
        encoder(ids[:, :HALF]),
        packed[:, :HALF],
        f"A text packed beside another is not encoded by {name} as it is alone: {advice}",
    )
    expect_equal(
        encoder(ids[:, :HALF]),
        encoder(ids, columns)[:, :HALF],
        f"A padded text is not encoded by {name} as it is alone: {advice}",
    )
    expect_equal(
        encoder(ids),
        encoder(ids, np.ones((ROWS, LENGTH, LENGTH), "bool")),
        f"{name} must take no mask for one with which every token sees all",
    )
    nothing = np.zeros((ROWS, LENGTH, LENGTH), "bool")
    common.expect_tensor(
        encoder(ids, nothing),
        (ROWS, LENGTH, encoder.latent_dim),
        f"Latents of {name} for tokens that may see nothing",
    )


def _check_freezing(encoder, name):
    encoder.freeze()
    expect(
        encoder.frozen and not encoder.trainable_variables,
        f"{name} has trainable weights after `freeze()`: make all of them in the constructor, "
        "before `self.seal()`",
    )
    # Whatever the flags say: what comes out of a frozen encoder must be a constant.
    variables = [v for v in encoder.variables if "float" in v.dtype]
    for variable in variables:
        variable.trainable = True
    ids = ops.convert_to_tensor(_ids(encoder))

    def loss(ids):
        return ops.sum(ops.square(encoder(ids))) + 0.0 * sum(ops.sum(v) for v in variables)

    _, gradients = ValueAndGradients(loss, variables)(ids)
    reached = [v.path for v, g in zip(variables, gradients, strict=True) if np.abs(g).max() > 0]
    expect(
        not reached,
        f"A gradient gets into the frozen {name}, at {reached}: implement `encode`, and leave "
        "`call` to `TextEncoder`",
    )
    encoder.unfreeze()
    expect(
        len(encoder.trainable_variables) == len(variables),
        f"{name} has {len(encoder.trainable_variables)} trainable weights after `unfreeze()`, of "
        f"{len(variables)}",
    )
