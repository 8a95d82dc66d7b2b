"""Each failure of a hub in one message that says what to do, soon, and without a chain."""

import errno
import pickle
import time

import pytest
from huggingface_hub import constants

from keras_elf.hub import HubError, download
from keras_elf.hub.errors import explain
from tests.hub.conftest import REPO
from tests.hub.server import unused_address

pytestmark = pytest.mark.backend_free

NEWEST = "checkpoint_78000"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """The client waits between its attempts."""
    monkeypatch.setattr(time, "sleep", lambda seconds: None)


def refused(*args, **kwargs):
    """The error of a download that fails: one sentence for people, no chain, no long wait."""
    start = time.time()
    with pytest.raises(HubError) as caught:
        download(REPO, kwargs.pop("patterns", NEWEST), *args, **kwargs)
    error = caught.value
    assert error.__cause__ is None and (error.__suppress_context__ or not error.__context__)
    assert "\n" not in str(error) and len(str(error)) < 700
    assert time.time() - start < 5
    return error


def says(error, reason, *words):
    assert error.reason == reason
    for word in words:
        assert word in str(error), (word, str(error))


STATUSES = {
    "anonymous 401": (401, None, None, "unauthorized", "private or gated", "HF_TOKEN"),
    "bad token": (401, None, "hf_old", "unauthorized", "refused the access token", "HF_TOKEN"),
    "gated 401": (401, "GatedRepo", None, "unauthorized", "is gated", f"/{REPO}", "HF_TOKEN"),
    "gated 403": (403, "GatedRepo", "hf_x", "forbidden", "is gated", "Ask for access"),
    "403": (403, None, "hf_x", "forbidden", "does not let this token read"),
    "no repository": (404, "RepoNotFound", None, "repository", "Check the name", "HF_ENDPOINT"),
    "no revision": (404, "RevisionNotFound", None, "revision", "no revision 'main'"),
    "429": (429, None, None, "rate_limit", "Wait a few minutes", "HF_TOKEN"),
    "500": (500, None, None, "server", "status 500", "try again in some minutes"),
    "503": (503, None, "hf_x", "server", "status 503"),
    "418": (418, None, None, "protocol", "status 418"),
}


@pytest.mark.parametrize("case", STATUSES)
@pytest.mark.parametrize("where", ["/api/", "/resolve/"])
def test_statuses(hub, case, where):
    status, code, token, reason, *words = STATUSES[case]
    if where == "/resolve/" and status == 404 and code != "RevisionNotFound":
        reason, words = "file", ["has no file 'checkpoint_78000'", "/tree/main"]
    if where == "/resolve/" and code == "RevisionNotFound":
        words = ["no revision"]
    hub.fail_with(status, where=where, code=code)
    says(refused(token=token), reason, *words)


def test_names_that_the_hub_does_not_know(hub):
    with pytest.raises(HubError, match="'owner/other' is not a repository"):
        download("owner/other", "*")
    says(refused(revision="v9"), "revision", "no revision 'v9'", "branches and tags")
    says(refused(patterns="model.safetensors"), "file", "'model.safetensors'", "It holds: ")


def test_rate_limit_says_how_long(hub):
    hub.fail_with(429, headers={"Retry-After": "300"})
    says(refused(), "rate_limit", "Wait 300 seconds")
    hub.fail_with(429, headers={"ratelimit": '"api";r=0;t=55'})
    says(refused(token="hf_x"), "rate_limit", "Wait 55 seconds")


def test_short_troubles_during_a_download_pass(hub):
    hub.fail_with(429, times=1, where="/resolve/", headers={"Retry-After": "0"})
    download(REPO, "config.json")
    hub.fail_with(503, times=3, where="/resolve/")
    download(REPO, NEWEST)


def test_a_wrong_token_from_the_environment(hub, monkeypatch):
    hub.require_token("hf_right")
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    says(refused(), "unauthorized", "refused the access token", "For a public repository, unset")
    monkeypatch.setenv("HF_TOKEN", "hf_rïght")
    says(refused(), "unauthorized", "characters that no token has")
    monkeypatch.delenv("HF_TOKEN")
    says(refused(token=True), "unauthorized", "no token is saved")
    monkeypatch.setenv("HF_TOKEN", "hf_right")
    assert download(REPO, "config.json").files


@pytest.mark.parametrize("where", ["/api/", "signed="])
def test_a_silent_hub(hub, monkeypatch, where):
    monkeypatch.setattr(constants, "HF_HUB_ETAG_TIMEOUT", 0.2)
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.2)
    hub.stall(20, where=where)
    error = refused()
    says(error, "timeout", "did not answer in time", "HF_HUB_DOWNLOAD_TIMEOUT", "elf_nano_kjv")
    # The hub is asked once before anything has arrived; a file some times, and then no more.
    assert len(hub.asked(where)) == (1 if where == "/api/" else 6)


def test_a_hub_that_is_not_there(hub, monkeypatch):
    monkeypatch.setattr(constants, "ENDPOINT", unused_address())
    error = refused()
    says(error, "unreachable", "Connection refused", "elf_nano_kjv", "import_checkpoint(path")


def test_offline_and_not_in_the_cache(hub, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    error = refused()
    says(error, "offline", "HF_HUB_OFFLINE", "elf_nano_kjv", "import_checkpoint(path")
    assert not hub.requests


@pytest.mark.parametrize("endpoint", ["not an address", "ftp://hub", "http://"])
def test_an_endpoint_that_is_none(hub, monkeypatch, endpoint):
    monkeypatch.setattr(constants, "ENDPOINT", endpoint)
    says(refused(), "protocol", "HF_ENDPOINT")


def test_a_portal_instead_of_a_hub(hub, monkeypatch):
    hub.fail_with(200)
    says(refused(), "protocol", "an answer that no hub gives", "guest network")


def test_a_mirror_that_states_no_hashes(hub):
    hub.hide_hashes()
    says(refused(), "protocol", "does not say the hashes", "HF_ENDPOINT")


def raised_by_a_client(name, text):
    """An error told by its name: the client's HTTP library differs between its versions."""
    return type(name, (type("TransportError", (Exception,), {}),), {})(text)


@pytest.mark.parametrize(
    "error, reason, word",
    [
        (
            raised_by_a_client("ConnectError", "[Errno -2] Name or service not known"),
            "unreachable",
            "Name or service",
        ),
        (
            raised_by_a_client("ConnectError", "[SSL: CERTIFICATE_VERIFY_FAILED]"),
            "unreachable",
            "SSL_CERT_FILE",
        ),
        (raised_by_a_client("ProxyError", "407"), "unreachable", "HTTPS_PROXY"),
        (OSError(errno.ENOSPC, "full", "/x/y"), "disk_full", "No space is left"),
        (PermissionError(errno.EACCES, "Permission denied", "/x/y"), "permission", "'/x/y'"),
        (OSError(errno.EROFS, "Read-only file system", "/x"), "permission", "HF_HOME"),
        (RuntimeError("surprise"), "protocol", "RuntimeError: surprise"),
    ],
)
def test_what_cannot_be_served(error, reason, word):
    says(explain(error, REPO, "main", "https://hub"), reason, word)


def test_it_is_an_oserror_and_travels_between_processes():
    error = pickle.loads(pickle.dumps(HubError("what", "offline")))
    assert isinstance(error, OSError) and (str(error), error.reason) == ("what", "offline")
