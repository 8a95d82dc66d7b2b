"""What a network must do for the objective, the samplers and the files that hold it."""

import numpy as np
from keras import ops

from keras_elf import denoiser
from keras_elf.compiled import compiled
from keras_elf.objectives import ELFObjective
from keras_elf.testing.conformance import common
from keras_elf.testing.conformance.common import expect, expect_equal
from keras_elf.testing.gradients import ValueAndGradients

ROWS, LENGTH = 4, 5


def check_denoiser(network):
    """Raise an error that says what is wrong where a network does not keep the contract.

    A copy with random weights is looked at, `network` stays as it is. What is checked: the
    names and shapes; saving; numbers and tensors `(batch,)` as values; rows that do not depend
    on their neighbours, on the length or on masked positions; an inference that is the same
    every time and the same compiled; finite float32 heads; that times, modes, scales and
    signals are told apart; that an objective's gradient reaches all weights.

    ```python
    def test_my_network():
        keras_elf.testing.check_denoiser(MyNetwork(vocabulary_size=20, latent_dim=8))
    ```

    Args:
        network: a small one, see `keras_elf.Denoiser`.

    Raises:
        ValueError: where a name is missing or a shape does not fit.
        AssertionError: for everything else.
    """
    denoiser.check_names(network)
    denoiser.check_shapes(network)
    copy = common.copied(network)
    denoiser.check_shapes(copy)
    asked = _Asked(common.randomised(common.same_weights(network, copy)))
    _check_outputs(asked)
    _check_saving(asked)
    _check_rows(asked)
    _check_values_matter(asked)
    _check_compiled(asked)
    _check_gradients(asked)


class _Asked:
    """A network and the arguments of one batch; `hidden(**changed)` asks it."""

    def __init__(self, network):
        self.network, self.name = network, type(network).__name__
        self.given = batch_for(network)

    def hidden(self, network=None, **changed):
        given = {**self.given, **changed}
        z, t = given.pop("z"), given.pop("t")
        return (network or self.network).hidden_states(z, t, **given)

    def rows(self, which, **changed):
        given = {**self.given, **changed}

        def cut(value):
            return value[which] if len(getattr(value, "shape", ())) else value

        signals = {k: cut(v) for k, v in given.pop("signals", {}).items()}
        given = {name: cut(value) for name, value in given.items()}
        return self.hidden(**given, **({"signals": signals} if signals else {}))


def batch_for(network, rows=ROWS, length=LENGTH):
    """Arguments of `hidden_states` for `network`: every second row in decode mode."""
    z, self_condition = common.normal(2, rows, length, network.latent_dim)
    numbers = np.linspace(0.1, 0.9, rows).astype("float32")
    given = {
        "z": ops.convert_to_tensor(z),
        "t": ops.convert_to_tensor(numbers),
        "self_condition": ops.convert_to_tensor(self_condition),
        "guidance_scale": None,
        "decode": ops.convert_to_tensor(np.float32(np.arange(rows) % 2)),
    }
    if denoiser.takes_guidance_scale(network):
        given["guidance_scale"] = ops.convert_to_tensor(1.0 + numbers)
    empty = denoiser.signals(network)
    if empty:
        given["signals"] = {
            name: ops.full((rows,), value, "int32" if isinstance(value, int) else "float32")
            for name, value in empty.items()
        }
    return given


def _check_saving(asked):
    twin = common.copied(asked.network)
    denoiser.ensure_built(twin)
    common.same_weights(asked.network, twin)
    expect_equal(
        asked.hidden(),
        asked.hidden(twin),
        f"{asked.name} gives other hidden states when it is made from its config and given the "
        "same weights: an argument is missing in `get_config`",
    )


def _check_outputs(asked):
    network, hidden = asked.network, asked.hidden()
    heads = {"denoising_head": network.latent_dim, "unembedding": network.vocabulary_size}
    for head, width in heads.items():
        output = getattr(network, head)(hidden)
        common.expect_tensor(output, (ROWS, LENGTH, width), f"`{head}` of {asked.name}")
    expect_equal(
        asked.hidden(training=False),
        hidden,
        f"{asked.name} is not the same every time with training=False: hand `training` on to the "
        "layers that drop something, and draw nothing else",
    )


def _check_rows(asked):
    hidden = asked.hidden()
    for row in range(2):
        expect_equal(
            hidden[row : row + 1],
            asked.rows(slice(row, row + 1)),
            f"A row of {asked.name} depends on the other rows of its batch: normalise and attend "
            "within a row",
        )
    for length in (1, 2 * LENGTH):
        z = ops.convert_to_tensor(common.normal(ROWS, length, asked.network.latent_dim))
        found = tuple(asked.hidden(z=z, self_condition=z).shape)[:2]
        expect(
            found == (ROWS, length),
            f"{asked.name} must take rows of any length. For {length} tokens it gave {found}",
        )
    scalars = {"t": 0.3, "decode": 1.0}
    if asked.given["guidance_scale"] is not None:
        scalars["guidance_scale"] = 2.0
    each = {name: ops.full((ROWS,), value, "float32") for name, value in scalars.items()}
    expect_equal(
        asked.hidden(**each),
        asked.hidden(**scalars),
        f"{asked.name} gives another result for numbers than for tensors (batch,) of these "
        f"numbers: {sorted(scalars)}. `self.context` of keras_elf.Denoiser takes both",
    )
    mask = np.ones((ROWS, LENGTH), "bool")
    mask[:, 3:] = False
    z = common.array(asked.given["z"])
    z[:, 3:] += 1.0
    seen = [asked.hidden(z=one, attention_mask=mask)[:, :3] for one in (asked.given["z"], z)]
    expect_equal(
        *seen,
        f"Positions that `attention_mask` hides reach the others in {asked.name}: hand the mask on "
        "to all layers that look at other positions",
    )


def _check_values_matter(asked):
    hidden = {"decode": (0.0, 1.0), "t": (0.1, 0.9)}
    if denoiser.takes_guidance_scale(asked.network):
        hidden["guidance_scale"] = (1.0, 4.0)
    advice = {
        "decode": "Denoise and decode mode must be told apart",
        "t": "The noise level must be known",
        "guidance_scale": "`takes_guidance_scale` promises that it is read",
    }
    for name, values in hidden.items():
        low, high = (asked.hidden(**{"decode": 0.0, name: value}) for value in values)
        expect(
            common.apart(low, high) > 1e-6,
            f"`{name}` does not change the hidden states of {asked.name}. {advice[name]}",
        )
    if denoiser.signals(asked.network):
        expect_equal(
            asked.hidden(),
            asked.hidden(signals=None),
            f"Without `signals` {asked.name} must do what it does for those that mean 'none'",
        )


def _check_compiled(asked):
    given = dict(asked.given)
    names = sorted(name for name, value in given.items() if value is not None)

    def function(*values):
        return asked.hidden(**dict(zip(names, values, strict=True)))

    try:
        found = compiled(function, asked.network.variables)(*(given[name] for name in names))
    except Exception as error:
        raise AssertionError(
            f"{asked.name} cannot be compiled: {error}. Use keras.ops, and no values of tensors "
            "in Python's `if` and `float`"
        ) from error
    expect_equal(asked.hidden(), found, f"{asked.name} gives another result when it is compiled")


def _check_gradients(asked):
    network, variables = asked.network, asked.network.trainable_variables
    objective, batch = ELFObjective("per_example"), objective_batch(network)
    draws = objective.draw(batch["clean"].shape, 3)
    rows = np.arange(len(batch["clean"]))
    draws["is_decode"] = ops.convert_to_tensor(rows % 2 == 0)
    draws["use_self_condition"] = ops.convert_to_tensor(rows % 4 == 1)

    def loss(batch, draws):
        return objective(network, batch, draws, training=False)["loss"]

    value, gradients = ValueAndGradients(loss, variables)(batch, draws)
    expect(np.isfinite(value), f"The loss of {asked.name} is {value}")
    common.refuse_unreached(asked.name, variables, gradients, "the objective")


def objective_batch(network, rows=8, length=LENGTH):
    """A batch as an objective is given it, the first position of every row a condition."""
    rng = np.random.default_rng(0)
    is_cond = np.zeros((rows, length), "bool")
    is_cond[:, 0] = True
    batch = {
        "clean": common.normal(rows, length, network.latent_dim),
        "token_ids": rng.integers(0, network.vocabulary_size, (rows, length)).astype("int32"),
        "is_cond": is_cond,
        "counts": 1.0 - is_cond.astype("float32"),
    }
    signals = batch_for(network, rows, length).get("signals")
    batch = {name: ops.convert_to_tensor(value) for name, value in batch.items()}
    return {**batch, "signals": signals} if signals else batch
