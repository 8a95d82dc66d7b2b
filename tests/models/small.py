"""Tiny models that the tests of this folder share."""

import contextlib
import warnings

import keras
import numpy as np
from keras import ops

from keras_elf.encoders import GaussianTable, LearnedTable, TransformerEncoder
from keras_elf.models import ELFBackbone, ELFGenerator, ELFPreprocessor
from keras_elf.objectives import ELFObjective
from keras_elf.optimizers import Muon
from keras_elf.testing import enliven as enliven_backbone
from tests.data import small

VOCABULARY_SIZE, LATENT_DIM, LENGTH, BATCH = small.VOCABULARY_SIZE, 16, 12, 6
BACKEND = keras.backend.backend()


def texts(number):
    """Beginnings of verses: some shorter than a row, some longer."""
    return [verse[: 4 + 5 * (i % 5)] for i, verse in enumerate(small.verses()[:number])]


def backbone(**overrides):
    return ELFBackbone(
        **{
            "vocabulary_size": VOCABULARY_SIZE,
            "latent_dim": LATENT_DIM,
            "depth": 1,
            "hidden_size": 16,
            "num_heads": 2,
            "bottleneck_dim": 8,
            **overrides,
        }
    )


def encoder(kind="transformer"):
    if kind == "transformer":
        made = TransformerEncoder(VOCABULARY_SIZE, LATENT_DIM, depth=1, num_heads=2)
        made.freeze()
        return made
    return {"gaussian": GaussianTable, "learned": LearnedTable}[kind](VOCABULARY_SIZE, LATENT_DIM)


def preprocessor(**overrides):
    return ELFPreprocessor(small.tokenizer(), **{"sequence_length": LENGTH, **overrides})


def generator(kind="transformer", tied=False, network=None, **overrides):
    """An `ELFGenerator` with the same first weights at every call.

    Args:
        kind: of `encoder`.
        tied: bool. Whether the unembedding is the encoder's table.
        network: dict of overrides of the backbone.
        **overrides: constructor arguments; `preprocessor=None` for a model on ids.
    """
    keras.utils.set_random_seed(3)
    text_encoder = encoder(kind)
    network = backbone(tied_to=text_encoder if tied else None, **(network or {}))
    overrides.setdefault("preprocessor", preprocessor())
    return ELFGenerator(
        network, text_encoder, **{"sequence_length": LENGTH, "seed": 1, "num_steps": 3, **overrides}
    )


def muon(learning_rate=1e-2, **overrides):
    return Muon(learning_rate, **{"ema_momentum": 0.8, **overrides})


def enliven(model, scale=0.3):
    """Random heads for a generator: as built, every prediction is zero, every text the same."""
    enliven_backbone(model.backbone, scale)
    return model


def rows(number, made_by=None):
    """Verses as a dict of arrays."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*were too long and were cut.*")
        return dict((made_by or preprocessor())(texts(number)))


def values(variables):
    return [np.array(ops.convert_to_numpy(v)) for v in variables]


def current_values(model):
    """Weights as they are now, also in the middle of `fit`."""
    if hasattr(model, "jax_state_sync"):
        model.jax_state_sync()
    return values(model.variables)


def averages(model):
    return values([average for _, average in model.optimizer.average_pairs()])


def all_equal(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def error_between(one, other):
    return max(np.abs(a - b).max() for a, b in zip(one, other, strict=True))


@keras.saving.register_keras_serializable(package="keras_elf_tests")
class CountingObjective(ELFObjective):
    """Counts how often its Python body runs: once a trace where steps are compiled."""

    traces = 0

    def __call__(self, *args, **kwargs):
        self.traces += 1
        return super().__call__(*args, **kwargs)


@contextlib.contextmanager
def recorded_forwards(network, mock=False):
    """Within the block, a list gets the arguments of each `hidden_states` call.

    With `mock=True` hidden states are made up: an uncompiled run then costs little.
    """
    calls, outer = [], vars(network).get("hidden_states")
    original = network.hidden_states

    def hidden_states(z, t, *args, **kwargs):
        names = ("self_condition", "guidance_scale", "decode")
        calls.append({"z": z, "t": t, **dict(zip(names, args, strict=False)), **kwargs})
        if mock:
            return ops.repeat(ops.mean(z, axis=-1, keepdims=True), network.hidden_size, axis=-1)
        return original(z, t, *args, **kwargs)

    object.__setattr__(network, "hidden_states", hidden_states)
    try:
        yield calls
    finally:
        object.__delattr__(network, "hidden_states")
        if outer is not None:
            object.__setattr__(network, "hidden_states", outer)
