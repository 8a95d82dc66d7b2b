"""Training times and a weighting of the error of one's own.

KERAS_BACKEND=torch python examples/own_parts/time_sampler.py

Measured on PyTorch with 100 sentences: 87 % grammatical, 66 s of one core.
"""

import grammar_model
import keras
from keras import ops

from keras_elf.objectives import ELFObjective, TimeBins, TimeSampler, Weighting


@keras.saving.register_keras_serializable(package="own_parts")
class PowerTimes(TimeSampler):
    """`u ** power` for even u: the higher the power, the more training near the noise.

    Args:
        power: float > 0. Defaults to `3.0`, a mean time of 0.25.
    """

    def __init__(self, power=3.0):
        self.power = power

    def times(self, draws):
        return draws**self.power


@keras.saving.register_keras_serializable(package="own_parts")
class ClippedWeighting(Weighting):
    """That of the velocity, `1 / (1 - t)^2`, up to a limit: late times do not drown the rest.

    Args:
        limit: float. Defaults to `4.0`, reached at t = 0.5.
    """

    def __init__(self, limit=4.0):
        self.limit = limit

    def weight(self, t):
        return 1.0 / ops.maximum(ops.square(1.0 - t), 1.0 / self.limit)


def main(directory, quick=False):
    objective = ELFObjective(
        time_sampler=PowerTimes(3.0), weighting=ClippedWeighting(4.0), terms=[TimeBins(4)]
    )
    elf = grammar_model.new_model(directory, quick=quick, objective=objective)
    grammar_model.train(elf, quick=quick)
    print(f"{grammar_model.share(elf):.1%} grammatical")
    return elf


if __name__ == "__main__":
    grammar_model.run(main, __file__)
