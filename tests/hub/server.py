"""A hub on loopback that speaks what the real client of `huggingface_hub` needs.

    with loopback_hub({"owner/name": {"config.json": b"{}", "big": path}}) as hub:
        env = hub.environment(home)   # for a process of its own
        hub.fail_with(404)            # from now on, until `hub.behave()`
        hub.requests                  # every request that came, of both servers

Files over `lfs_above` bytes are redirected to a second server, of another origin, as the
real hub does with the content network that stores its large files.
"""

import contextlib
import hashlib
import http.server
import json
import os
import pathlib
import re
import socket
import threading
import urllib.parse
from dataclasses import dataclass

_LEASE = "signed=by-the-hub"


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict
    is_storage: bool


class File:
    """Content in memory or on disk, with both hashes, computed when first asked for."""

    def __init__(self, content, lfs_above):
        self.content = content if isinstance(content, bytes) else pathlib.Path(content)
        on_disk = isinstance(self.content, pathlib.Path)
        self.size = self.content.stat().st_size if on_disk else len(self.content)
        self.is_lfs = self.size > lfs_above
        sha256 = hashlib.sha256()
        git = hashlib.sha1(b"blob %d\0" % self.size)
        for block in self.blocks(0):
            sha256.update(block)
            git.update(block)
        self.sha256, self.git = sha256.hexdigest(), git.hexdigest()
        self.digest = self.sha256 if self.is_lfs else self.git

    def blocks(self, start):
        if isinstance(self.content, bytes):
            for at in range(start, self.size, 1 << 16):
                yield self.content[at : at + (1 << 16)]
            return
        with open(self.content, "rb") as file:
            file.seek(start)
            while block := file.read(1 << 18):
                yield block


class LoopbackHub:
    """The state of a hub: its repositories, its mood, and who asked for what."""

    def __init__(self, repositories, lfs_above=4096):
        self.lfs_above = lfs_above
        self.repositories = {}
        self.requests = []
        self.closing = threading.Event()
        self.behave()
        for repo_id, files in repositories.items():
            self.update(repo_id, files)
        self.servers = [_Server(self, is_storage) for is_storage in (False, True)]
        self.url, self.storage_url = (server.url for server in self.servers)

    def update(self, repo_id, files, revision="main"):
        """Put `files` (name -> bytes or path) at a revision; return its commit."""
        files = {name: File(content, self.lfs_above) for name, content in files.items()}
        state = json.dumps({name: file.sha256 for name, file in sorted(files.items())})
        commit = hashlib.sha1(f"{repo_id} {state}".encode()).hexdigest()
        revisions = self.repositories.setdefault(repo_id, {})
        revisions[revision] = revisions[commit] = (commit, files)
        return commit

    def behave(self):
        """Undo every switch below."""
        self.failure = None
        self.stalled = None
        self.cut = None
        self.corrupted = set()
        self.token = None
        self.hashes_hidden = False

    def fail_with(self, status, times=None, where="", headers=None, code=None):
        """Answer requests whose path holds `where` with `status`, `times` times or always."""
        headers = dict(headers or {}, **({"X-Error-Code": code} if code else {}))
        self.failure = [status, times, where, headers]

    def stall(self, seconds, where=""):
        """Say nothing for a while to requests whose path holds `where`."""
        self.stalled = (seconds, where)

    def cut_after(self, count, times=None):
        """End the connection after `count` bytes of a large file, `times` times or always."""
        self.cut = [count, times]

    def corrupt(self, name):
        """Flip a byte in the middle of a file on its way out."""
        self.corrupted.add(name)

    def require_token(self, token):
        """Refuse who does not bring it."""
        self.token = token

    def hide_hashes(self):
        """Leave the hashes out of the listing, as a simple mirror does."""
        self.hashes_hidden = True

    def asked(self, text=""):
        """`"METHOD path"` of the requests so far whose path holds `text`."""
        return [f"{r.method} {r.path}" for r in self.requests if text in r.path]

    def environment(self, home, **more):
        """`os.environ` for a process that uses this hub, with its caches below `home`."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING"))}
        return {
            **kept,
            "HF_ENDPOINT": self.url,
            "HF_HOME": os.path.join(home, "hf"),
            "KERAS_HOME": os.path.join(home, "keras"),
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
            **more,
        }

    def close(self):
        self.closing.set()
        for server in self.servers:
            server.shutdown()
            server.server_close()


@contextlib.contextmanager
def loopback_hub(repositories, lfs_above=4096):
    """Serve `{repo_id: {filename: bytes or path}}` while the block runs."""
    hub = LoopbackHub(repositories, lfs_above)
    try:
        yield hub
    finally:
        hub.close()


def unused_address():
    """The address of a hub that is not there: connections are refused."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, hub, is_storage):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hub, self.is_storage = hub, is_storage
        self.url = f"http://127.0.0.1:{self.server_port}"
        # The default of half a second is what a test would wait at its end.
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # a client that gives up is what many tests are about


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self._answer()

    def do_GET(self):
        self._answer()

    def _answer(self):
        hub, storage = self.server.hub, self.server.is_storage
        headers = {name.lower(): value for name, value in self.headers.items()}
        hub.requests.append(Request(self.command, self.path, headers, storage))
        if hub.stalled and hub.stalled[1] in self.path:
            hub.closing.wait(hub.stalled[0])
        if hub.failure and hub.failure[2] in self.path and hub.failure[1] != 0:
            status, times, _, headers = hub.failure
            hub.failure[1] = None if times is None else times - 1
            return self._error(status, headers=headers)
        path = urllib.parse.urlparse(self.path).path
        if storage:
            return self._storage(path, self.path.endswith(_LEASE))
        sent = self.headers.get("authorization")
        if hub.token and sent != f"Bearer {hub.token}":
            return self._error(401, None if sent else "RepoNotFound")
        if match := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/([^/]+))?", path):
            repo_id, revision = match.groups()
            found = self._find(repo_id, revision or "main")
            return found and self._listing(repo_id, *found)
        if match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            found = self._find(match.group(1), match.group(2))
            return found and self._resolve(urllib.parse.unquote(match.group(3)), *found)
        return self._error(404)

    def _find(self, repo_id, revision):
        revisions = self.server.hub.repositories.get(repo_id)
        if revisions is None:
            return self._error(404, "RepoNotFound")
        found = revisions.get(urllib.parse.unquote(revision))
        return found or self._error(404, "RevisionNotFound")

    def _listing(self, repo_id, commit, files):
        rows = []
        for name, file in sorted(files.items()):
            row = {"rfilename": name}
            if not self.server.hub.hashes_hidden:
                row |= {"blobId": file.git, "size": file.size}
                if file.is_lfs:
                    row["lfs"] = {"sha256": file.sha256, "size": file.size, "pointerSize": 134}
            rows.append(row)
        whole = {"id": repo_id, "modelId": repo_id, "sha": commit, "tags": [], "siblings": rows}
        body = json.dumps(whole).encode()
        self._head(200, {"Content-Type": "application/json", "Content-Length": len(body)})
        self._send(body)

    def _resolve(self, name, commit, files):
        file = files.get(name)
        headers = {"X-Repo-Commit": commit}
        if file is None:
            return self._error(404, "EntryNotFound", headers)
        if not file.is_lfs:
            return self._content(name, file, headers)
        headers |= {"X-Linked-Etag": f'"{file.digest}"', "X-Linked-Size": file.size}
        place = urllib.parse.quote(f"/{commit}/{name}")
        headers["Location"] = f"{self.server.hub.storage_url}{place}?{_LEASE}"
        self._head(302, headers | {"Content-Length": 0})

    def _storage(self, path, is_signed):
        _, commit, name = urllib.parse.unquote(path).split("/", 2)
        for revisions in self.server.hub.repositories.values():
            if is_signed and commit in revisions:
                return self._content(name, revisions[commit][1][name], {})
        return self._error(403)

    def _content(self, name, file, headers):
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("range") or "")
        start = int(wanted.group(1)) if wanted else 0
        headers = headers | {"ETag": f'"{file.digest}"', "Accept-Ranges": "bytes"}
        headers["Content-Length"] = file.size - start
        if wanted:
            headers["Content-Range"] = f"bytes {start}-{file.size - 1}/{file.size}"
        self._head(206 if wanted else 200, headers)
        hub, at = self.server.hub, start
        left = None
        if hub.cut and hub.cut[1] != 0 and file.is_lfs and self.command == "GET":
            left, times = hub.cut
            hub.cut[1] = None if times is None else times - 1
        for block in file.blocks(start):
            middle = file.size // 2 - at
            if name in hub.corrupted and 0 <= middle < len(block):
                block = block[:middle] + bytes([block[middle] ^ 1]) + block[middle + 1 :]
            at += len(block)
            if left is not None and len(block) >= left:
                self._send(block[:left])
                self.wfile.flush()
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            left = None if left is None else left - len(block)
            self._send(block)

    def _error(self, status, code=None, headers=None):
        headers = dict(headers or {}, **({"X-Error-Code": code} if code else {}))
        self._head(status, headers | {"Content-Length": 0})

    def _head(self, status, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()

    def _send(self, body):
        if self.command == "GET":
            self.wfile.write(body)
