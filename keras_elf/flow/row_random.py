"""Random numbers as a function of a row's number: the same ones in any batch.

Counter-based and made of 32-bit integer operations alone, so that they run inside a compiled
step, on any device, and every backend gives the same numbers.
"""

from keras import ops

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
# 2**32 over the golden ratio, as a signed number.
_GOLDEN = 0x9E3779B9 - 2**32


def threefry_2x32(key, counter):
    """The Threefry-2x32 hash with 20 rounds.

    Args:
        key: pair of int32 tensors, or ints.
        counter: pair of int32 tensors that broadcast against the key.

    Returns:
        Pair of int32 tensors, whose bits are random.

    Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011).
    """
    first, second = (ops.cast(k, "int32") for k in key)
    keys = (first, second, ops.bitwise_xor(ops.bitwise_xor(first, second), _PARITY))
    x = ops.cast(counter[0], "int32") + keys[0]
    y = ops.cast(counter[1], "int32") + keys[1]
    for group in range(5):
        for bits in _ROTATIONS[group % 2]:
            x = x + y
            y = ops.bitwise_xor(_rotated(y, bits), x)
        x = x + keys[(group + 1) % 3]
        y = y + keys[(group + 2) % 3] + (group + 1)
    return x, y


def row_uniform(rows, shape, seed, stream):
    """Uniforms in [0, 1) that depend on the seed, the row, the stream and the place alone.

    Args:
        rows: int tensor `(batch,)`. Numbers of the rows.
        shape: tuple of ints or int tensors. What each row gets.
        seed: int tensor or int.
        stream: int. Draws of different streams are independent.

    Returns:
        float32 tensor `(batch, *shape)`.
    """
    bits = _row_bits(rows, shape, seed, stream)
    return _flat_to_shape(ops.stack([_unit(b) for b in bits], axis=-1), shape)


def row_normal(rows, shape, seed, stream):
    """Standard normals, with the arguments of `row_uniform` (Box-Muller)."""
    first, second = _row_bits(rows, shape, seed, stream)
    # From (0, 1]: the logarithm of 0 is infinite.
    radius = ops.sqrt(-2.0 * ops.log(1.0 - _unit(first)))
    angle = 6.283185307179586 * _unit(second)
    return _flat_to_shape(
        ops.stack([radius * ops.cos(angle), radius * ops.sin(angle)], axis=-1), shape
    )


def row_spread(rows):
    """A number in [0, 1) for each row, such that any run of rows covers [0, 1) evenly.

    Multiples of the golden ratio: of n rows that follow each other, the share below any
    bound differs from the bound by little more than 1 / n.
    """
    return _unit(ops.cast(rows, "int32") * _GOLDEN)


def _rotated(x, bits):
    # The shift to the right copies the sign, so what it brings in is cut off.
    low = ops.bitwise_and(ops.right_shift(x, 32 - bits), (1 << bits) - 1)
    return ops.bitwise_or(ops.left_shift(x, bits), low)


def _unit(bits):
    """Float in [0, 1) from the upper 24 bits."""
    upper = ops.bitwise_and(ops.right_shift(bits, 8), 0xFFFFFF)
    return ops.cast(upper, "float32") * 2.0**-24


def _size(shape):
    size = 1
    for axis in shape:
        size = size * axis
    return size


def _row_bits(rows, shape, seed, stream):
    """Two int32 tensors `(batch, half the numbers of a row)`."""
    blocks = ops.arange((_size(shape) + 1) // 2, dtype="int32")[None, :]
    return threefry_2x32(
        (seed, ops.cast(rows, "int32")[:, None]), (blocks, ops.full_like(blocks, stream))
    )


def _flat_to_shape(pairs, shape):
    """Pairs `(batch, blocks, 2)` in a row's order, cut and shaped."""
    batch = ops.shape(pairs)[0]
    flat = ops.reshape(pairs, (batch, 2 * ops.shape(pairs)[1]))
    return ops.reshape(flat[:, : _size(shape)], (batch, *shape))
