"""Tiny models that the tests of this folder share."""

import contextlib

import keras
import numpy as np
from keras import ops

from keras_elf.encoders import GaussianTable, LearnedTable, TransformerEncoder
from keras_elf.models import ELFBackbone, ELFGenerator, ELFPreprocessor
from keras_elf.objectives import ELFObjective
from keras_elf.optimizers import Muon
from tests.data import small

VOCABULARY_SIZE, LATENT_DIM, LENGTH, BATCH = small.VOCABULARY_SIZE, 16, 12, 6
BACKEND = keras.backend.backend()


def backbone(**overrides):
    return ELFBackbone(
        **{
            "vocabulary_size": VOCABULARY_SIZE,
            "latent_dim": LATENT_DIM,
            "depth": 2,
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


def generator(encoder_kind="transformer", with_preprocessor=True, tied=False, **overrides):
    """An `ELFGenerator` with the same first weights at every call."""
    keras.utils.set_random_seed(3)
    text_encoder = encoder(encoder_kind)
    if with_preprocessor:
        overrides.setdefault("preprocessor", preprocessor())
    network = overrides.pop("backbone", None)
    return ELFGenerator(
        network or backbone(tied_to=text_encoder if tied else None),
        text_encoder,
        **{"sequence_length": LENGTH, "seed": 1, "num_steps": 3, **overrides},
    )


def muon(learning_rate=1e-2, **overrides):
    return Muon(learning_rate, **{"ema_momentum": 0.8, **overrides})


def rows(number, model_preprocessor=None):
    """Verses as a dict of arrays."""
    texts = [verse[:25] for verse in small.verses()[:number]]
    return dict((model_preprocessor or preprocessor())(texts))


def values(variables):
    return [np.array(ops.convert_to_numpy(v)) for v in variables]


def all_equal(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@keras.saving.register_keras_serializable(package="keras_elf_tests")
class CountingObjective(ELFObjective):
    """Counts how often its Python body runs: once a trace where steps are compiled."""

    traces = 0

    def __call__(self, *args, **kwargs):
        self.traces += 1
        return super().__call__(*args, **kwargs)


@contextlib.contextmanager
def recorded_forwards(network):
    """Within the block, a list gets `(rows, arguments)` of each `hidden_states` call."""
    calls = []
    original = network.hidden_states

    def hidden_states(z, t, *args, **kwargs):
        calls.append({"rows": z.shape[0], "z": z, "t": t, "args": args, **kwargs})
        return original(z, t, *args, **kwargs)

    object.__setattr__(network, "hidden_states", hidden_states)
    try:
        yield calls
    finally:
        object.__delattr__(network, "hidden_states")
