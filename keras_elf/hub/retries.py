"""When to ask a hub again, and after how long: seconds and a handful of times, never minutes."""

import re

# How often one file may fail without a step forward, and how often a listing is asked for.
ATTEMPTS = 5
QUESTIONS = 3
WAITS = (1, 2, 4, 8)
# A hub may ask for minutes; a person would rather be told than wait in silence.
LONGEST_WAIT = 10
_BROKEN = {"TimeoutException", "NetworkError", "RemoteProtocolError", "ConnectionError"}


def retry_after(response):
    """Seconds that a hub asks to wait, or `None`."""
    limits = re.search(r";\s*t\s*=\s*(\d+)", response.headers.get("ratelimit") or "")
    value = limits.group(1) if limits else (response.headers.get("retry-after") or "").strip()
    return int(value) if value.isdigit() else None


def wait_before(error, attempt, patient):
    """Seconds to wait before asking again, or `None` if that would be in vain."""
    response = getattr(error, "response", None)
    usual = WAITS[min(attempt, len(WAITS) - 1)]
    if response is not None:
        if response.status_code == 429:
            seconds = retry_after(response)
            return seconds if seconds is not None and seconds <= LONGEST_WAIT else None
        return usual if response.status_code in (408, 500, 502, 503, 504) else None
    names = {cls.__name__ for cls in type(error).__mro__}
    if "OfflineModeIsEnabled" in names or not names & _BROKEN:
        return None
    # Before anything has arrived, a refused or silent hub is better reported at once.
    if not patient and names & {"ConnectError", "TimeoutException"}:
        return None
    return usual
