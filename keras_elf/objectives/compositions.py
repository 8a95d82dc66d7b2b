"""How the branches are spread over the rows of a batch."""

import keras
from keras import ops

from keras_elf import checks
from keras_elf.configurable import Configurable
from keras_elf.objectives.groups import RowGroups
from keras_elf.objectives.mixed import mixed_loss
from keras_elf.objectives.randomness import uniform
from keras_elf.objectives.sharding import data_blocks
from keras_elf.objectives.stratified import stratified_loss


class Composition(Configurable):
    """Base of the compositions; as it stands, each row has a branch of its own."""

    def branch(self, rows, seed):
        """float32 `(rows,)` in [0, 1): rows below the decode probability decode."""
        return uniform((rows,), seed)

    def __call__(self, objective, network, batch, draws, training):
        """The report of a batch; arguments as in `ELFObjective.__call__`."""
        return mixed_loss(objective, network, batch, draws, training)


@keras.saving.register_keras_serializable(package="keras_elf")
class PerExample(Composition):
    """A branch for each row, as the public PyTorch code."""


@keras.saving.register_keras_serializable(package="keras_elf")
class PerStep(Composition):
    """One branch for the whole step, as the public JAX code."""

    def branch(self, rows, seed):
        return ops.broadcast_to(uniform((1,), seed), (rows,))


@keras.saving.register_keras_serializable(package="keras_elf")
class Stratified(Composition):
    """Fixed shares of rows for each branch: least work, least variance.

    A batch with too few rows for its groups is treated row by row.
    """

    def __call__(self, objective, network, batch, draws, training):
        p_decode, p_sc = objective.decode_probability, objective.self_conditioning_probability
        shares = (p_decode, (1 - p_decode) * p_sc, (1 - p_decode) * (1 - p_sc))
        groups = RowGroups(ops.shape(batch["clean"])[0], shares, data_blocks())
        if groups.fit:
            return stratified_loss(objective, network, batch, draws, groups, training)
        return super().__call__(objective, network, batch, draws, training)


_BY_NAME = {"stratified": Stratified, "per_example": PerExample, "per_step": PerStep}
COMPOSITIONS = tuple(_BY_NAME)


def get(composition):
    """A `Composition` from one, or from its name."""
    if isinstance(composition, Composition):
        return composition
    return _BY_NAME[checks.choice("composition", composition, COMPOSITIONS)]()
