"""Asking the hub and fetching a file: few retries, no endless waits, resumed where it stopped.

`huggingface_hub` gives the session, the headers, the token and the errors. Its own download
waits as long as a server tells it to, sends some requests without any timeout, and throws
a half-downloaded file away, so the loop that does the waiting is here.
"""

import logging
import os
import time
import urllib.parse

from keras_elf.hub import listing, retries
from keras_elf.hub.errors import HubError
from keras_elf.hub.explain import explain
from keras_elf.version import __version__

logger = logging.getLogger("keras_elf")

_PROGRESS = 1 << 20


class Hub:
    """One endpoint, asked with one token."""

    def __init__(self, token=None):
        from huggingface_hub import constants
        from huggingface_hub.utils import build_hf_headers

        self.token = token
        self.endpoint = constants.ENDPOINT.rstrip("/")
        self.headers = {}
        try:
            self.headers = build_hf_headers(
                token=token, library_name="keras_elf", library_version=__version__
            )
        except Exception as error:
            raise self.error(error, "the repository", None) from None

    def error(self, error, repo_id, revision, filename=None):
        """The `HubError` for what the client raised."""
        logger.debug("The hub's client raised", exc_info=error)
        has_token = "authorization" in self.headers
        return explain(error, repo_id, revision, self.endpoint, filename, has_token)

    def listing(self, repo_id, revision):
        """The `Listing` of a revision: one request."""
        from huggingface_hub import HfApi, constants

        api = HfApi(
            endpoint=self.endpoint,
            token=self.token,
            library_name="keras_elf",
            library_version=__version__,
        )
        for attempt in range(retries.QUESTIONS):
            try:
                info = api.model_info(
                    repo_id,
                    revision=revision,
                    timeout=constants.HF_HUB_ETAG_TIMEOUT,
                    files_metadata=True,
                )
                return listing.from_model_info(info)
            except Exception as error:
                wait = retries.wait_before(error, attempt, patient=False)
                if wait is None or attempt + 1 == retries.QUESTIONS:
                    raise self.error(error, repo_id, revision) from None
                time.sleep(wait)

    def fetch(self, repo_id, commit, name, size, path):
        """Download a file to `path`, going on behind what `path` holds already.

        Args:
            repo_id: str.
            commit: str. The full hash.
            name: str. The file in the repository.
            size: int. Bytes that the hub says it has.
            path: str. What is there is kept if the download fails.
        """
        url = "/".join(
            (self.endpoint, repo_id, "resolve", commit, urllib.parse.quote(name, safe="/"))
        )
        failures = 0
        with _progress_bar(name, size, _size(path)) as bar:
            while True:
                before = _size(path)
                try:
                    self._stream(url, path, size, bar)
                    return
                except Exception as error:
                    failures = 1 if _size(path) >= before + _PROGRESS else failures + 1
                    wait = retries.wait_before(error, failures - 1, patient=True)
                    if wait is None or failures >= retries.ATTEMPTS:
                        raise self.error(error, repo_id, commit, name) from None
                    logger.info("%s: %s; trying again in %d s", name, error, wait)
                    time.sleep(wait)

    def _stream(self, url, path, size, bar):
        from huggingface_hub import constants
        from huggingface_hub.utils import get_session, hf_raise_for_status

        with open(path, "ab") as file:
            have = file.tell()
            if have > size:
                have = _restart(file, bar)
            if have == size:
                return
            headers = {**self.headers, "Accept-Encoding": "identity"}
            if have:
                headers["Range"] = f"bytes={have}-"
            with get_session().stream(
                "GET",
                url,
                headers=headers,
                timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT,
                follow_redirects=True,
            ) as response:
                hf_raise_for_status(response)
                if have and not _continues(response, have):
                    have = _restart(file, bar)
                    if response.status_code == 206:
                        raise ConnectionError("the hub sent another part than was asked for")
                for block in response.iter_bytes():
                    have += len(block)
                    if have > size:
                        _restart(file, bar)
                        raise HubError(
                            f"{self.endpoint} sends more than the {size} bytes it says "
                            f"{url.rsplit('/', 1)[-1]!r} has. Try again later.",
                            "damaged",
                        )
                    file.write(block)
                    bar.update(len(block))
            if have < size:
                raise ConnectionError(f"the connection ended after {have} of {size} bytes")
            file.flush()
            # Before the rename that declares it whole: a power cut may not undo half of it.
            os.fsync(file.fileno())


def _continues(response, have):
    content_range = response.headers.get("content-range", "")
    return response.status_code == 206 and content_range.startswith(f"bytes {have}-")


def _restart(file, bar):
    file.truncate(0)
    bar.n = 0
    return 0


def _size(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def _progress_bar(name, size, have):
    from huggingface_hub.utils import tqdm

    # `None`: only where a person watches. A small file is there before its bar could be read.
    hidden = None if size > _PROGRESS else True
    return tqdm(
        total=size,
        initial=min(have, size),
        desc=name[-40:],
        unit="B",
        unit_scale=True,
        disable=hidden,
        name="keras_elf.download",
    )
