"""Newton-Schulz orthogonalisation, the matrix part of the Muon optimizer."""

import contextlib

import keras
from keras import ops

from keras_elf import checks
from keras_elf.accelerators import has_accelerator

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
# Numbers in one group. An accelerator is filled by many matrices at once; a stacked copy of every
# matrix of a large network would cost as much memory as its weights. One large matrix fills a CPU,
# where a stack that outgrows the cache costs more than it saves.
MAX_GROUP_ELEMENTS, MAX_GROUP_ELEMENTS_ON_CPU = 2**27, 2**18
# Below this ratio of the sides the products in the Gram matrix cost more than they save.
GRAM_ASPECT = 1.5
# From this side on a product that is symmetric is computed by halves.
SYMMETRIC_SIDE = 256
# How many iterations the Gram matrix is carried through before it is formed anew.
GRAM_RUN = 3


def newton_schulz(matrix, steps=5, epsilon=1e-8):
    """Push all singular values of a matrix towards one, keeping its singular vectors.

    The quintic iteration `x <- a x + (b x x^T + c (x x^T)^2) x` after division by the
    Frobenius norm, computed in float32 on the side that is smaller. Its coefficients buy
    speed with precision: five steps leave the singular values between 0.68 and 1.21, and
    those below 0.002 of the norm are still on their way. Source: the ELF paper's
    optimizer, Muon (arXiv 2605.10938), as in `optax.contrib.muon`.

    Matrices that are at least one and a half times as wide as high are iterated in their
    small Gram matrix `x x^T` (see `_iterate_gram`): the same polynomial, with a rounding error
    of the same size, for fewer products. Of large symmetric products, which most are, a quarter
    is copied and not computed.

    Args:
        matrix: float tensor. Shape `(..., rows, columns)`; leading axes are a batch of
            matrices, each treated alone.
        steps: integer. Number of iterations. Defaults to 5.
        epsilon: float. Added to the Frobenius norm. Defaults to 1e-8.

    Returns:
        float32 tensor of the shape of `matrix`.

    Raises:
        ValueError: if `matrix` has fewer than two axes, or `steps` is not a whole number >= 0.
    """
    steps = checks.integer("steps", steps, minimum=0)
    if len(matrix.shape) < 2:
        raise ValueError(
            "`matrix` must have at least two axes (rows, columns). "
            f"Received a tensor of shape {tuple(matrix.shape)}"
        )
    x = ops.cast(matrix, "float32")
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = ops.swapaxes(x, -1, -2)
    norm = ops.sqrt(ops.sum(ops.square(x), axis=(-2, -1), keepdims=True))
    x = x / (norm + epsilon)
    with _float32_products():
        if x.shape[-1] >= GRAM_ASPECT * x.shape[-2]:
            for start in range(0, steps, GRAM_RUN):
                x = _iterate_gram(x, min(GRAM_RUN, steps - start))
        else:
            x = _iterate(x, steps)
    return ops.swapaxes(x, -1, -2) if tall else x


def _float32_products():
    """Where JAX takes fewer bits unless told: on GPUs and TPUs."""
    if keras.backend.backend() != "jax":
        return contextlib.nullcontext()
    import jax

    return jax.default_matmul_precision("highest")


def _iterate(x, steps):
    """The iteration as it is written."""
    for _ in range(steps):
        x = COEFFICIENTS[0] * x + ops.matmul(_even_part(_gram(x)), x)
    return x


def _iterate_gram(x, steps):
    """`steps` iterations that touch the wide matrix twice.

    With `g = x x^T` an iteration is `x <- p x`, `p = a + b g + c g^2`, and turns `g` into
    `p g p`. All these are polynomials in the first `g`: they are multiplied up as small
    matrices, `q = p_k ... p_1`, and `x` is multiplied by `q` once at the end. Rounding of `g`
    hides singular values far below the largest, and an iteration makes them up to `a` times
    larger: hence few steps in a row, after which `g` is formed anew.
    """
    a = COEFFICIENTS[0]
    g = _gram(x)
    p = _even_part(g)
    q = p + a * ops.eye(g.shape[-1], dtype="float32")
    for _ in range(steps - 1):
        half = a * g + _symmetric_product(p, g)
        g = a * half + _symmetric_product(half, p)
        p = _even_part(g)
        q = a * q + _symmetric_product(p, q)
    return ops.matmul(q, x)


def _gram(x):
    return _symmetric_product(x, ops.swapaxes(x, -1, -2))


def _even_part(gram):
    """`b g + c g^2`."""
    _, b, c = COEFFICIENTS
    return b * gram + _symmetric_product(c * gram, gram)


def _symmetric_product(a, b):
    """`a b` where that is symmetric, as a Gram matrix or a product of polynomials in one is."""
    side = a.shape[-2]
    if side < SYMMETRIC_SIDE:
        return ops.matmul(a, b)
    half = side // 2
    upper = ops.matmul(a[..., :half, :], b)
    corner = ops.matmul(a[..., half:, :], b[..., half:])
    lower = ops.concatenate([ops.swapaxes(upper[..., half:], -1, -2), corner], axis=-1)
    return ops.concatenate([upper, lower], axis=-2)


def newton_schulz_grouped(matrices, steps=5, epsilon=1e-8):
    """Orthogonalise many matrices, those of one shape together as one batched product.

    A matrix and the transpose of another count as one shape, smallest side first. A deep
    network has few distinct shapes, so this replaces hundreds of products by a few large ones,
    and the compiler sees a program that does not grow with depth. On a CPU only small matrices
    are put together: large ones are faster alone.

    Args:
        matrices: list of float tensors. Each of shape `(rows, columns)`.
        steps: integer. Number of iterations. Defaults to 5.
        epsilon: float. Added to each Frobenius norm. Defaults to 1e-8.

    Returns:
        List of float32 tensors, in the order and of the shapes of `matrices`.
    """
    results = [None] * len(matrices)
    most = MAX_GROUP_ELEMENTS if has_accelerator() else MAX_GROUP_ELEMENTS_ON_CPU
    for shape, indices in group_by_shape([m.shape for m in matrices], most):
        wide = [_wide(ops.cast(matrices[i], "float32")) for i in indices]
        if len(wide) == 1:
            done = [newton_schulz(wide[0], steps, epsilon)]
        else:
            batch = newton_schulz(ops.stack(wide, axis=0), steps, epsilon)
            done = [batch[k] for k in range(len(wide))]
        for i, x in zip(indices, done, strict=True):
            results[i] = x if tuple(matrices[i].shape) == shape else ops.swapaxes(x, 0, 1)
    return results


def group_by_shape(shapes, max_elements):
    """Return a list of `((small, large), [indices])` that covers `shapes`.

    Args:
        shapes: list of pairs of integers.
        max_elements: integer. Upper bound on the numbers in one group; a group always holds
            at least one matrix.

    Returns:
        List of `((small, large), [indices])`, in order of first appearance.
    """
    groups = {}
    for index, shape in enumerate(shapes):
        groups.setdefault(tuple(sorted(int(n) for n in shape)), []).append(index)
    cut = []
    for (small, large), indices in groups.items():
        most = max(1, max_elements // max(1, small * large))
        cut += [((small, large), indices[k : k + most]) for k in range(0, len(indices), most)]
    return cut


def _wide(matrix):
    return ops.swapaxes(matrix, 0, 1) if matrix.shape[0] > matrix.shape[1] else matrix
