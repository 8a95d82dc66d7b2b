"""What a context signal must do for the prefix that holds it."""

import numpy as np
from keras import ops

from keras_elf.layers import ContextPrefix, ContextSignal, TimeSignal
from keras_elf.testing.conformance import common
from keras_elf.testing.conformance.common import expect, expect_equal
from keras_elf.testing.gradients import ValueAndGradients

WIDTH, ROWS, LENGTH = 8, 3, 2


def check_signal(signal, values=None):
    """Raise an error that says what is wrong where a context signal does not keep the contract.

    Copies made from its config are looked at, `signal` stays as it is and may still join a
    `ContextPrefix`. What is checked: saving; tokens of the width and number it says, of each row
    alone; that values are told apart, and the empty one too; a gradient to all weights; its
    place in a `ContextPrefix`; that `parameter_count` asks for no more weights than it has.

    Args:
        signal: `keras_elf.layers.ContextSignal`.
        values: list of two values that it must tell apart. Defaults to `None`: 0 and 1, or 0.2
            and 0.8 where it reads real numbers.

    Raises:
        ValueError: for what is no `ContextSignal`.
        AssertionError: for everything else.
    """
    if not isinstance(signal, ContextSignal):
        raise ValueError(
            f"`signal` must be a keras_elf.layers.ContextSignal. Received: {signal!r:.200}"
        )
    name = type(signal).__name__
    if values is None:
        values = [0, 1] if "int" in signal.value_dtype else [0.2, 0.8]
    values = np.array([*values, values[0]], signal.value_dtype)
    copy = _alone(signal)
    _check_tokens(copy, name, values)
    _check_empty(copy, name, values)
    twin = common.same_weights(copy, _alone(signal, random=False))
    expect_equal(
        copy(values),
        twin(values),
        f"{name} makes other tokens when it is made from its config and given the same weights",
    )

    def loss(values):
        return ops.sum(ops.square(ops.cast(copy(values), "float32") + 0.1))

    variables = copy.trainable_variables
    _, gradients = ValueAndGradients(loss, variables)(values)
    common.refuse_unreached(name, variables, gradients, "its tokens")
    settings = {k: v for k, v in copy.get_config().items() if k != "num_tokens"}
    asked = type(copy).parameter_count(copy.width, num_tokens=copy.num_tokens, **settings)
    expect(
        asked <= copy.count_params(),
        f"`parameter_count` of {name} asks for {asked} weights, and there are "
        f"{copy.count_params()}: a preset with them would be refused",
    )
    _check_in_prefix(signal, name, values)


def _alone(signal, random=True):
    copy = common.copied(signal)
    copy.join(copy.hidden_size or WIDTH)
    copy.build((None,))
    return common.randomised(copy) if random else copy


def _check_tokens(signal, name, values):
    shape = (signal.num_tokens, signal.width)
    tokens = signal(values)
    common.expect_tensor(tokens, (len(values), *shape), f"Tokens of {name}")
    for row in (0, 1):
        expect_equal(
            tokens[row : row + 1],
            signal(values[row : row + 1]),
            f"The tokens of a row of {name} depend on the other rows",
        )
    expect_equal(
        tokens[:1], signal(values[0]), f"{name} makes other tokens of a number than of one row"
    )
    expect(
        common.apart(tokens[0], tokens[1]) > 1e-6,
        f"{name} makes the same tokens of {values[0]} and {values[1]}: what it is told must show. "
        "`values=` names two others that it must tell apart",
    )


def _check_empty(signal, name, values):
    if signal.empty is None:
        return
    tokens = signal(np.array([signal.empty], signal.value_dtype))
    common.expect_tensor(
        tokens, (1, signal.num_tokens, signal.width), f"Tokens of {name} for `empty`"
    )
    others = [v for v in values if v != signal.empty]
    for value in others:
        expect(
            common.apart(tokens[0], signal(value)[0]) > 1e-6,
            f"{name} makes the same tokens of `empty`, {signal.empty}, and of {value}: no value "
            "must be told from a value",
        )


def _check_in_prefix(signal, name, values):
    copy = common.copied(signal)
    signals = [copy] if copy.key == "t" else [TimeSignal(1), copy]
    prefix = ContextPrefix(copy.hidden_size or WIDTH, signals=signals)
    x, t = common.normal(ROWS, LENGTH, prefix.hidden_size), np.float32([0.2, 0.8, 0.2])
    given = {"t": (values, {})}.get(copy.key)
    if given is None:
        own = copy.key in ("guidance_scale", "decode")
        given = t, ({copy.key: values} if own else {"signals": {copy.key: values}})
    out, length = prefix(x, given[0], **given[1])
    total = sum(one.num_tokens for one in signals)
    expect(
        length == total and tuple(out.shape) == (ROWS, total + LENGTH, prefix.hidden_size),
        f"{name} makes {length} tokens in a ContextPrefix, and says {total}",
    )
    expect_equal(
        out[:, total - copy.num_tokens : total],
        copy(values),
        f"The tokens of {name} are others in a ContextPrefix than alone",
    )
    if copy.empty is not None and "signals" in given[1]:
        prefix(x, t)
