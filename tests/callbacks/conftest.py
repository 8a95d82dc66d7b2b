"""One compiled model for all tests of callbacks, set back to its beginning for each."""

import pytest

from tests.callbacks import runs


@pytest.fixture(scope="session")
def _shared():
    return runs.Shared()


@pytest.fixture
def shared(_shared):
    """The tiny model, its rows, and helpers around both; as good as new."""
    _shared.reset()
    yield _shared
    _shared.reset()
