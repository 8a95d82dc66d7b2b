"""Floats for property tests."""

from hypothesis import strategies as st


def between(low, high):
    """Strategy of floats in [low, high], ends included.

    Made from integers: Hypothesis refuses its own floats where denormals are flushed, as
    the tests do on PyTorch.
    """
    return st.integers(0, 1000).map(lambda n: low + (high - low) * n / 1000)
