"""What the environment says, in processes of their own: the client reads it when imported."""

import json
import os
import pty
import subprocess
import sys
import termios
import threading

import pytest

from tests.hub.server import loopback_hub

pytestmark = pytest.mark.backend_free

REPO = "owner/name"
FILES = {"config.json": b"{}", "checkpoint_7": bytes(range(256)) * 8000}
SCRIPT = """
import json, sys
from keras_elf.hub import HubError, download, keras_home_directory
found = {"home": keras_home_directory("x")}
try:
    result = download("owner/name", sys.argv[1:], revision="v1")
    found.update(path=result.path, files=sorted(result.files))
except HubError as error:
    found["error"] = str(error)
try:
    download("owner/other", "*")
except HubError as error:
    found["other"] = error.reason
found["modules"] = [m for m in ("keras", "keras_hub", "hf_xet", "torch") if m in sys.modules]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def hub():
    with loopback_hub({}) as hub:
        hub.update(REPO, FILES, revision="v1")
        hub.require_token("hf_from_the_environment")
        yield hub


def run(environment, *patterns, terminal=False):
    """The script's findings, and what it wrote to standard error (a terminal if asked for)."""
    command = [sys.executable, "-c", SCRIPT, *patterns]
    if not terminal:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), done.stderr
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    shown = []

    def listen():
        # A terminal whose other end is closed raises instead of ending.
        try:
            while block := os.read(ours, 4096):
                shown.append(block)
        except OSError:
            pass

    listener = threading.Thread(target=listen)
    listener.start()
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=theirs, text=True, timeout=60
    )
    os.close(theirs)
    listener.join()
    os.close(ours)
    return json.loads(done.stdout), b"".join(shown).decode()


def test_endpoint_home_token_and_terminal(hub, tmp_path):
    environment = hub.environment(str(tmp_path), HF_TOKEN="hf_from_the_environment")
    found, shown = run(environment, "config.json", "*_7", terminal=True)
    assert found["path"].startswith(str(tmp_path / "hf" / "hub" / "models--owner--name"))
    assert found["files"] == ["checkpoint_7", "config.json"]
    assert found["home"] == str(tmp_path / "keras" / "keras_elf" / "presets" / "x")
    assert found["other"] == "repository"
    assert found["modules"] == []
    assert hub.asked("/revision/v1") and "checkpoint_7" in shown and "100%" in shown
    agent = hub.requests[0].headers["user-agent"]
    assert agent.startswith("keras_elf/")

    hub.requests.clear()
    # Offline, and a token no more: everything comes from the cache.
    offline = hub.environment(str(tmp_path), HF_HUB_OFFLINE="1")
    again, shown = run(offline, "config.json", "*_7")
    assert again == {**found, "other": "offline"} and shown == ""
    assert not hub.requests


def test_no_bar_and_a_wrong_token(hub, tmp_path):
    right = hub.environment(str(tmp_path / "a"), HF_TOKEN="hf_from_the_environment")
    found, shown = run({**right, "HF_HUB_DISABLE_PROGRESS_BARS": "1"}, "*_7", terminal=True)
    assert found["files"] == ["checkpoint_7"] and shown == ""
    wrong = hub.environment(str(tmp_path / "b"), HF_TOKEN="hf_wrong", HF_HUB_OFFLINE="0")
    found, shown = run(wrong, "*")
    assert "refused the access token (401)" in found["error"] and shown == ""
