"""This process's hub client, pointed at a hub on loopback."""

import contextlib

import huggingface_hub
from huggingface_hub import constants


@contextlib.contextmanager
def pointed_at(server, cache, monkeypatch):
    """Within the block downloads go to `server`, into the empty directory `cache`."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(constants, "ENDPOINT", server.url)
    # The client's own download builds its addresses from this, made when it was imported.
    template = server.url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(cache.parent / "token"))
    # The client goes on behind the last whole part of 10 MB, more than a file of a test has.
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1 << 16)
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    yield server


@contextlib.contextmanager
def fresh_session():
    """The client reads proxies and certificates when it makes its session: once, that is slow."""
    huggingface_hub.close_session()
    yield
    huggingface_hub.close_session()
