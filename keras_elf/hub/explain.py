"""What the client or the operating system raised, in words."""

import errno
import json

from keras_elf.hub.errors import HubError, how_to_log_in, ways_out
from keras_elf.hub.refusals import refused

_CACHE = "the cache (set HF_HOME to choose another place)"
_DISK_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_NOT_A_PLACE = {errno.ENOTDIR, errno.EEXIST, errno.EISDIR}


def explain(error, repo_id, revision, endpoint, filename=None, has_token=False):
    """Return the `HubError` that says in one sentence or two what `error` means.

    The client's classes are told by their names: it has changed the HTTP library below it
    before, and importing either one here would tie this package to a version of it.

    Args:
        error: Exception. What the client or the operating system raised.
        repo_id: str. The repository asked for.
        revision: str. The revision asked for.
        endpoint: str. Address of the hub.
        filename: str or None. The file asked for. Defaults to `None`.
        has_token: bool. Whether a token was sent. Defaults to `False`.
    """
    if isinstance(error, HubError):
        return error
    names = {cls.__name__ for cls in type(error).__mro__}
    response = getattr(error, "response", None)
    if response is not None:
        return refused(response, names, repo_id, revision, endpoint, filename, has_token)
    if "OfflineModeIsEnabled" in names:
        return HubError(
            f"{repo_id!r} is not in the cache and HF_HUB_OFFLINE forbids to download it; unset "
            f"that where there is a network. {ways_out(repo_id)}",
            "offline",
        )
    if "LocalTokenNotFoundError" in names:
        return HubError(
            "`token=True` was asked for, yet no token is saved here. " + how_to_log_in(),
            "unauthorized",
        )
    if isinstance(error, UnicodeEncodeError) or "LocalProtocolError" in names:
        return HubError(
            "The access token holds characters that no token has. Check HF_TOKEN for line ends, "
            "quotes or blanks.",
            "unauthorized",
        )
    return (
        _no_answer(error, names, repo_id, endpoint)
        or explain_local(error, _CACHE)
        or _other(error, endpoint)
    )


def _no_answer(error, names, repo_id, endpoint):
    text = str(error)
    if "ProxyError" in names:
        return HubError(
            f"The proxy to {endpoint} does not work ({_short(text)}). Check HTTPS_PROXY, "
            f"HTTP_PROXY and NO_PROXY. {ways_out(repo_id)}",
            "unreachable",
        )
    if names & {"TimeoutException", "TimeoutError"}:
        return HubError(
            f"{endpoint} did not answer in time. Try again: a download goes on where it stopped. "
            "On a slow line set HF_HUB_ETAG_TIMEOUT and HF_HUB_DOWNLOAD_TIMEOUT to more seconds. "
            f"{ways_out(repo_id)}",
            "timeout",
        )
    if "CERTIFICATE_VERIFY_FAILED" in text or "SSLError" in names:
        return HubError(
            f"The certificate of {endpoint} cannot be verified. Check this machine's clock; behind "
            "a company's proxy set SSL_CERT_FILE to its certificate bundle. "
            f"{ways_out(repo_id)}",
            "unreachable",
        )
    if names & {"UnsupportedProtocol", "InvalidURL"}:
        return HubError(
            f"HF_ENDPOINT is not the address of a hub: {endpoint!r}. Unset it or use one like "
            "'https://huggingface.co'.",
        )
    if names & {"NetworkError", "RemoteProtocolError", "ConnectionError", "TransportError"}:
        return HubError(
            f"{endpoint} cannot be reached ({_short(text) or type(error).__name__}). Check the "
            f"network and try again. {ways_out(repo_id)}",
            "unreachable",
        )
    return None


def explain_local(error, place):
    """The `HubError` for a full disk or for missing write access at `place`, else `None`."""
    code = getattr(error, "errno", None)
    name = getattr(error, "filename", None)
    where = f"{place}: {name!r}" if name else place
    if code in _DISK_FULL:
        return HubError(
            f"No space is left on the disk of {where}. Free some and try again; nothing broken "
            "was left behind.",
            "disk_full",
        )
    if code in _FORBIDDEN or code in _NOT_A_PLACE:
        return HubError(f"Writing is not possible ({error.strerror}) in {where}.", "permission")
    return None


def _other(error, endpoint):
    if isinstance(error, OSError) and error.errno is not None:
        return HubError(f"Using {_CACHE} failed: {_short(str(error))}", "permission")
    if isinstance(error, json.JSONDecodeError | KeyError | TypeError | AssertionError):
        return HubError(
            f"{endpoint} answered with something that a hub does not say. Check HF_ENDPOINT; on "
            "a guest network, log in with a browser first."
        )
    return HubError(f"Asking {endpoint} failed: {type(error).__name__}: {_short(str(error))}")


def _short(text):
    lines = text.strip().splitlines()
    return lines[0][:160] if lines else ""
