"""One compiled model for all tests of callbacks, set back to its beginning for each."""

import signal

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


@pytest.fixture
def interruptible():
    """Ctrl-C as in a terminal: a shell has its background processes ignore it."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)
