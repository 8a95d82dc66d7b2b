"""The shapes that benchmarks run at, and models and batches of them."""

import dataclasses

import numpy as np

NAMES = ("tiny", "nano", "elf_b_slice", "elf_b", "elf_m", "elf_l")


@dataclasses.dataclass(frozen=True)
class Size:
    """One shape of network and batch.

    Attributes:
        depth, hidden_size, num_heads, latent_dim, vocabulary_size, bottleneck_dim: of
            `ELFBackbone`.
        length: int. Tokens of a sequence.
        batch: int. Sequences of a batch.
    """

    depth: int
    hidden_size: int
    num_heads: int
    latent_dim: int
    vocabulary_size: int
    length: int
    batch: int
    bottleneck_dim: int = 128

    @property
    def tokens(self):
        """Text tokens of a batch."""
        return self.batch * self.length

    def architecture(self):
        """Constructor arguments of `ELFBackbone`."""
        config = dataclasses.asdict(self)
        return {k: v for k, v in config.items() if k not in ("length", "batch")}

    def t5(self):
        """Constructor arguments of a `T5Encoder` of this latent width; T5-small at 512."""
        return {
            "vocabulary_size": -(-self.vocabulary_size // 128) * 128,
            "num_layers": min(self.depth, 6),
            "num_heads": max(2, self.latent_dim // 64),
            "latent_dim": self.latent_dim,
            "intermediate_dim": 4 * self.latent_dim,
        }


_SMALL = {
    "tiny": Size(2, 64, 2, 32, 256, length=32, batch=10, bottleneck_dim=16),
    "nano": Size(6, 256, 4, 128, 2048, length=64, batch=32),
    "elf_b_slice": Size(12, 768, 12, 512, 32100, length=128, batch=8),
}


def get(name, length=None, batch=None):
    """The `Size` of a name, with another length or batch where given.

    The published sizes have S = 1024 and 5 rows, the fewest that hold the shares of the three
    kinds of rows (1 decode, 2 self-conditioned, 2 plain) exactly.
    """
    if name in _SMALL:
        size = _SMALL[name]
    else:
        from keras_elf.models import architecture

        size = Size(**architecture(name), length=1024, batch=5)
    changes = {"length": length, "batch": batch}
    return dataclasses.replace(size, **{k: v for k, v in changes.items() if v is not None})


def backbone(size, dtype="float32", **architecture):
    """An `ELFBackbone` whose heads, zero at first, predict something."""
    from keras_elf import ELFBackbone

    network = ELFBackbone(**size.architecture(), **architecture, dtype=dtype)
    rng = np.random.default_rng(1)
    for variable in network.denoising_head.trainable_variables:
        if len(variable.shape) == 2:
            variable.assign(0.02 * rng.standard_normal(variable.shape, "float32"))
    return network


def generator(size, dtype="float32", composition="stratified", optimizer="muon", **architecture):
    """An `ELFGenerator` with a Gaussian table for an encoder, compiled.

    Args:
        size: `Size`.
        dtype: dtype policy of the backbone.
        composition: see `ELFObjective`.
        optimizer: `"muon"`, or `"none"` for SGD at rate 0, which costs next to nothing.
        **architecture: further arguments of `ELFBackbone`.
    """
    import keras

    import keras_elf

    elf = keras_elf.ELFGenerator(
        backbone(size, dtype, **architecture),
        keras_elf.encoders.GaussianTable(size.vocabulary_size, size.latent_dim),
        objective=keras_elf.objectives.ELFObjective(composition=composition),
        sequence_length=size.length,
        seed=0,
    )
    plain = keras.optimizers.SGD(0.0)
    elf.compile(optimizer=keras_elf.optimizers.Muon(1e-3) if optimizer == "muon" else plain)
    return elf


def batch(size):
    """A batch of random token ids without condition or padding, as dict of arrays."""
    shape = size.batch, size.length
    ids = np.random.default_rng(0).integers(0, size.vocabulary_size, shape)
    return {
        "token_ids": ids.astype("int32"),
        "is_cond": np.zeros(shape, "bool"),
        "is_valid": np.ones(shape, "bool"),
    }
