"""One error for all that can go wrong with a hub: what happened and what to do."""

import errno
import re

# The hub could not be asked: what the cache holds may be used instead.
UNREACHABLE = frozenset({"offline", "unreachable", "timeout", "rate_limit", "server"})
_LOG_IN = (
    "Make a token at https://huggingface.co/settings/tokens and set the environment variable "
    "HF_TOKEN to it, or run `hf auth login`."
)


class HubError(OSError):
    """A download or the cache failed; the message says what happened and what to do.

    Args:
        message: str. What happened and what to do about it.
        reason: str. One of `"offline"`, `"unreachable"`, `"timeout"`, `"rate_limit"`,
            `"server"` (the hub could not be asked), `"unauthorized"`, `"forbidden"`,
            `"repository"`, `"revision"`, `"file"` (the hub refused), `"damaged"`,
            `"disk_full"`, `"permission"` and `"protocol"`. Defaults to `"protocol"`.

    Attributes:
        reason: str. As above, for code that reacts to some of them.
    """

    def __init__(self, message, reason="protocol"):
        super().__init__(message)
        self.reason = reason


# Why own messages: those of the client name its own arguments and URLs, over several lines.
def explain(error, repo_id, revision, endpoint, filename=None):
    """Return the `HubError` that says what `error` means.

    The client's classes are told by their names, because its HTTP library differs between
    its versions.

    Args:
        error: Exception. What the client or the operating system raised.
        repo_id: str. The repository asked for.
        revision: str. The revision asked for.
        endpoint: str. Address of the hub.
        filename: str or None. The file asked for. Defaults to `None`.
    """
    if isinstance(error, HubError):
        return error
    names = {cls.__name__ for cls in type(error).__mro__}
    if "LocalEntryNotFoundError" in names and error.__cause__ is not None:
        # The client looked into its cache because of another error, which tells more.
        return explain(error.__cause__, repo_id, revision, endpoint, filename)
    response = getattr(error, "response", None)
    if response is not None:
        return _refused(response, names, repo_id, revision, endpoint, filename)
    text = (str(error).strip().splitlines() or [""])[0][:160]
    kind = type(error).__name__
    other_ways = (
        f"Without a network: copy the files of {repo_id!r} from another machine and import them "
        "with `keras_elf.checkpoints.import_checkpoint(path, preset_dir, preset=name, "
        "encoder=t5)`, where `t5` is a directory with the files of google-t5/t5-small; or use "
        'the preset that comes with the package: `ELFGenerator.from_preset("elf_nano_kjv")`.'
    )
    if "OfflineModeIsEnabled" in names:
        return HubError(
            f"{repo_id!r} is not in the cache and HF_HUB_OFFLINE forbids to download it; unset "
            f"that where there is a network. {other_ways}",
            "offline",
        )
    if "LocalTokenNotFoundError" in names:
        return HubError(f"`token=True`, but no token is saved here. {_LOG_IN}", "unauthorized")
    if isinstance(error, UnicodeEncodeError) or "LocalProtocolError" in names:
        return HubError(
            "The access token holds characters that no token has. Check HF_TOKEN for line ends, "
            "quotes or spaces.",
            "unauthorized",
        )
    if names & {"TimeoutException", "TimeoutError", "Timeout"}:
        return HubError(
            f"{endpoint} did not answer in time. Try again: files that are complete are kept. On "
            "a slow line set HF_HUB_ETAG_TIMEOUT and HF_HUB_DOWNLOAD_TIMEOUT to more seconds. "
            f"{other_ways}",
            "timeout",
        )
    if names & {"UnsupportedProtocol", "InvalidURL"}:
        return HubError(
            f"HF_ENDPOINT is not the address of a hub: {endpoint!r}. Unset it or use one like "
            "'https://huggingface.co'."
        )
    if names & {"NetworkError", "RemoteProtocolError", "ConnectionError", "TransportError"}:
        return HubError(
            f"{endpoint} cannot be reached ({text or kind}). Check the network and try again. "
            "Behind a proxy check HTTPS_PROXY, and SSL_CERT_FILE if a certificate cannot be "
            f"verified. {other_ways}",
            "unreachable",
        )
    if names & {"FileMetadataError", "JSONDecodeError", "KeyError", "TypeError", "AssertionError"}:
        return HubError(
            f"{endpoint} gave an answer that no hub gives ({kind}). Check HF_ENDPOINT; on a guest "
            "network, log in with a browser first."
        )
    return explain_local(error, "the cache (set HF_HOME to choose another place)") or HubError(
        f"Asking {endpoint} for {repo_id!r} failed: {kind}: {text}"
    )


def explain_local(error, place):
    """The `HubError` for a full disk or for missing write access at `place`, else `None`."""
    code, name = getattr(error, "errno", None), getattr(error, "filename", None)
    where = f"{place}: {name!r}" if name else place
    if code in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
        return HubError(
            f"No space is left on the disk of {where}. Free some and try again; no broken file "
            "was left behind.",
            "disk_full",
        )
    forbidden = (errno.EACCES, errno.EPERM, errno.EROFS)
    if code in (*forbidden, errno.ENOTDIR, errno.EEXIST, errno.EISDIR):
        return HubError(f"Writing is not possible ({error.strerror}) in {where}.", "permission")
    return None


def _refused(response, names, repo_id, revision, endpoint, filename):
    status, page = response.status_code, f"{endpoint}/{repo_id}"
    has_token = "authorization" in response.request.headers
    reason = {401: "unauthorized", 403: "forbidden", 404: "repository", 429: "rate_limit"}.get(
        status, "server" if status >= 500 else "protocol"
    )
    if "RevisionNotFoundError" in names:
        reason = "revision"
        text = (
            f"{repo_id!r} has no revision {revision!r}. Its branches and tags are listed at "
            f"{page}/tree/main; without a revision, 'main' is used."
        )
    elif "EntryNotFoundError" in names or (status == 404 and filename):
        reason = "file"
        text = (
            f"{repo_id!r} has no file {filename!r} at revision {revision!r}. Its files are "
            f"listed at {page}/tree/main."
        )
    elif "GatedRepoError" in names:
        text = (
            f"{repo_id!r} is gated: its owners decide who may read it. Ask for access at "
            f"{page}, then: {_LOG_IN}"
        )
    elif status == 401 and has_token:
        text = (
            f"{endpoint} refused the access token (401) for {repo_id!r}: it is wrong, has "
            "expired, or may not read this repository. Make a new one with read access. "
            f"{_LOG_IN} For a public repository, unset HF_TOKEN."
        )
    elif status == 401:
        text = (
            f"{endpoint} wants to know who asks for {repo_id!r} (401): it is private or gated, "
            f"or does not exist. Check the name; if it is right: {_LOG_IN}"
        )
    elif status == 403:
        text = (
            f"{endpoint} does not let this {'token' if has_token else 'machine'} read "
            f"{repo_id!r} (403). Ask for access at {page}, then: {_LOG_IN}"
        )
    elif status == 404:
        text = (
            f"{repo_id!r} is not a repository of {endpoint} (404). Check the name, and "
            f"HF_ENDPOINT if it is set; if the repository is private: {_LOG_IN}"
        )
    elif status == 429:
        text = (
            f"{endpoint} received too many requests from here (429). Wait {_wait(response)} and "
            "try again." + ("" if has_token else f" An access token raises the limit. {_LOG_IN}")
        )
    elif status >= 500:
        text = (
            f"{endpoint} failed with status {status} when asked for {repo_id!r}. The fault is on "
            "its side: try again in some minutes; files that are complete are kept."
        )
    else:
        text = f"{endpoint} answered with status {status} when asked for {repo_id!r}."
    return HubError(text, reason)


def _wait(response):
    limits = re.search(r";\s*t\s*=\s*(\d+)", response.headers.get("ratelimit") or "")
    seconds = limits.group(1) if limits else response.headers.get("retry-after") or ""
    return f"{seconds} seconds" if seconds.strip().isdigit() else "a few minutes"
