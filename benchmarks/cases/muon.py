"""Newton-Schulz on the matrices of the network, and its share of a training step."""

import functools

import numpy as np

from benchmarks import flops, sizes, timing
from benchmarks.cases import Variant, circumstances, figures

ABOUT = "Newton-Schulz in groups against matrix by matrix, and its share of a training step"
TOKENS = tuple(2**k for k in range(10, 17))
PLAIN, SINGLE, GROUPED = "plain, matrix by matrix", "newton_schulz", "newton_schulz_grouped"


def plain_newton_schulz(matrix):
    """The iteration as it is written down: five times a x + (b G + c G G) x, G = x x^T."""
    from keras import ops

    x = ops.transpose(matrix) if matrix.shape[0] > matrix.shape[1] else matrix
    x = x / (ops.sqrt(ops.sum(ops.square(x))) + 1e-8)
    for _ in range(5):
        gram = ops.matmul(x, ops.transpose(x))
        x = 3.4445 * x + ops.matmul(-4.7750 * gram + 2.0315 * ops.matmul(gram, gram), x)
    return ops.transpose(x) if matrix.shape[0] > matrix.shape[1] else x


def functions():
    """dict of the three ways to orthogonalise a list of matrices."""
    from keras_elf.optimizers.newton_schulz import newton_schulz, newton_schulz_grouped

    return {
        PLAIN: lambda matrices: [plain_newton_schulz(m) for m in matrices],
        SINGLE: lambda matrices: [newton_schulz(m) for m in matrices],
        GROUPED: newton_schulz_grouped,
    }


@functools.cache
def _matrices(size):
    import keras

    rng = np.random.default_rng(0)
    return [
        keras.ops.convert_to_tensor(rng.standard_normal(shape, "float32"))
        for shape in flops.kernel_shapes(size)
    ]


@functools.cache
def _compiled(name, size):
    import keras_elf

    matrices = _matrices(size)
    run = keras_elf.models.compiled(functions()[name], [])
    return lambda: run(matrices)


def variants(settings):
    size = settings.shape
    # What the plain iteration needs, so that a method that needs less shows as a larger share.
    count = flops.newton_schulz(flops.kernel_shapes(size))
    return {
        name: Variant(
            lambda name=name: _compiled(name, size),
            count,
            flops_dtype="float32",
            memory=name != SINGLE,
        )
        for name in (PLAIN, SINGLE, GROUPED)
    }


def run(settings):
    size = settings.shape
    found = figures(settings, "muon", variants(settings))
    results = [largest_difference(size, name) for name in (PLAIN, SINGLE, GROUPED)]
    for figure, difference in zip(found, results, strict=True):
        figure["difference"] = difference
    grouped = found[-1]["time_s"]["median"]
    return [*found, share_of_step(settings, grouped)]


def largest_difference(size, name):
    """Largest difference to the plain iteration, over the largest entry of the plain one."""
    import keras

    arrays = keras.tree.map_structure(
        keras.ops.convert_to_numpy, [_compiled(n, size)() for n in (PLAIN, name)]
    )
    error = max(np.abs(a - b).max() for a, b in zip(*arrays, strict=True))
    return float(error / max(np.abs(a).max() for a in arrays[0]))


def share_of_step(settings, newton_schulz_s):
    """The share of a step for 1k to 64k tokens a batch.

    Loss and gradient are measured at the size's own batch, with an optimizer that does next to
    nothing; at other numbers of tokens they are taken to cost in proportion.
    """
    size = settings.shape
    elf = sizes.generator(size, settings.dtype, optimizer="none")
    batch = sizes.batch(size)
    watch = timing.Stopwatch(lambda: elf.train_on_batch(batch))
    timed = timing.compare({"loss and gradient": watch}, settings.repeats)["loss and gradient"]
    per_token = timed["time_s"]["median"] / size.tokens
    return {
        "case": "muon",
        "what": "loss and gradient, no optimizer",
        **circumstances(settings),
        **timed,
        "tokens": size.tokens,
        "tokens_per_s": 1 / per_token,
        "muon_share": [
            {
                "tokens": tokens,
                "share": newton_schulz_s / (newton_schulz_s + tokens * per_token),
                "extrapolated": tokens != size.tokens,
            }
            for tokens in TOKENS
        ],
    }
