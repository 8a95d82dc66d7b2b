"""What a hub means that answers with a status, in words."""

from keras_elf.hub.errors import HubError, how_to_log_in
from keras_elf.hub.retries import retry_after


def refused(response, names, repo_id, revision, endpoint, filename, has_token):
    status = response.status_code
    page = f"{endpoint}/{repo_id}"
    if "RevisionNotFoundError" in names:
        return HubError(
            f"{repo_id!r} has no revision {revision!r}. Its branches and tags are listed at "
            f"{page}/tree/main; without a revision, 'main' is used.",
            "revision",
        )
    if "EntryNotFoundError" in names or (status == 404 and filename):
        return HubError(
            f"{repo_id!r} has no file {filename!r} at revision {revision!r}. Its files are listed "
            f"at {page}/tree/main.",
            "file",
        )
    if "GatedRepoError" in names:
        return HubError(
            f"{repo_id!r} is gated: its owners let in whom they have agreed with. Ask for access "
            f"at {page}, then: {how_to_log_in()}",
            "unauthorized" if status == 401 else "forbidden",
        )
    if status == 401 and has_token:
        return HubError(
            f"{endpoint} refused the access token (401) for {repo_id!r}: it is wrong, has "
            "expired, or may not read this repository. Make a new one with read access. "
            f"{how_to_log_in()} For a public repository, unset HF_TOKEN.",
            "unauthorized",
        )
    if status == 401:
        return HubError(
            f"{endpoint} wants to know who asks for {repo_id!r} (401): it is private or gated, or "
            f"does not exist. Check the name; if it is right: {how_to_log_in()}",
            "unauthorized",
        )
    if status == 403:
        return HubError(
            f"{endpoint} does not let this {'token' if has_token else 'machine'} read {repo_id!r} "
            f"(403). Ask for access at {page}, then: {how_to_log_in()}",
            "forbidden",
        )
    if status == 404:
        return HubError(
            f"{repo_id!r} is not a repository of {endpoint} (404). Check the name, and HF_ENDPOINT "
            f"if it is set; if the repository is private: {how_to_log_in()}",
            "repository",
        )
    if status == 429:
        seconds = retry_after(response)
        wait = f"{seconds} seconds" if seconds else "a few minutes"
        token = "" if has_token else " An access token raises the limit. " + how_to_log_in()
        return HubError(
            f"{endpoint} received too many requests from here (429). Wait {wait} and try "
            f"again.{token}",
            "rate_limit",
        )
    if status >= 500:
        return HubError(
            f"{endpoint} failed with status {status} when asked for {repo_id!r}. The fault is "
            "there: try again in some minutes; what was downloaded so far is kept.",
            "server",
        )
    return HubError(f"{endpoint} answered with status {status} when asked for {repo_id!r}.")
