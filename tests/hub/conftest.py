"""A hub on loopback for a module, and for each test caches of its own."""

import pytest

from tests.hub.client import fresh_session, pointed_at
from tests.hub.server import loopback_hub

REPO = "owner/ELF-B-toy"
LARGE = bytes(range(256)) * 2000
FILES = {
    "README.md": b"# a toy\n",
    "config.json": b'{"a": 1}\n',
    "checkpoint_500": b"old" * 4000,
    "checkpoint_78000": LARGE,
    "assets/vocab.txt": b"a\nb\n",
}


@pytest.fixture(scope="module")
def server():
    with loopback_hub({REPO: FILES}) as hub, pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1")
        with fresh_session():
            yield hub


@pytest.fixture
def hub(server, tmp_path, monkeypatch):
    """The hub, well-behaved, with this process's client pointed at it and empty caches."""
    server.behave()
    server.requests.clear()
    server.update(REPO, FILES)
    with pointed_at(server, tmp_path / "hf", monkeypatch):
        yield server
