"""A stand-in for the Hugging Face Hub on the loopback, for the real clients ``huggingface_hub`` and ``datasets``.

    with HubStandIn() as hub:
        api = HfApi(endpoint=hub.url, token="hf_writer")       # in this process
        subprocess.run(argv, env=hub.environment(tmp_path))    # another one: HF_ENDPOINT is read at import
        hub.files("demo/results")                              # path -> bytes at the head of main
        hub.received()                                         # every byte a client sent, decoded too
        hub.fail("POST .*/commit/", status=500, landed=True)   # next such request: done, but answered with 500
        hub.before("POST .*/commit/", action)                  # action() runs before the next such request is served
        hub.requests                                           # what was asked and how it was answered

Tests get a running one as the fixture ``hub`` (tests/conftest.py). Users: ``hf_writer`` may write to every repository,
``hf_reader`` only reads (403 on a write), no token sees public repositories only (401 hides private ones). A
gated repository answers 403 to all but the writer. Xet is not spoken: clients run with HF_HUB_DISABLE_XET=1, which
``environment`` sets and tests/conftest.py sets for this process.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

from hub_standin_forms import Asked, Fault
from hub_standin_http import Handler
from hub_standin_repo import Commit, Entry, Repo, entry_of, is_lfs


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that was killed breaks its connection."""


class HubStandIn:
    """The server; a context manager. Everything it keeps is in memory."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.repos: dict[str, Repo] = {}
        self.blobs: dict[str, bytes] = {}
        self.requests: list[Asked] = []
        self._faults: list[Fault] = []
        self._hooks: list[tuple[re.Pattern[str], Callable[[], object]]] = []
        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.hub = self  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> HubStandIn:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def environment(self, home: Path, token: str | None = "hf_writer") -> dict[str, str]:
        """Environment of another process that shall see this Hub and nothing of the user's."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        given = {"HF_TOKEN": token} if token else {}
        return kept | given | {
            "HOME": str(home), "HF_HOME": str(home / "hf"), "HF_ENDPOINT": self.url, "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_UPDATE_CHECK": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1", "OMP_NUM_THREADS": "1",
        }  # fmt: skip

    # what a test looks at

    def files(self, repo: str, revision: str = "main") -> dict[str, bytes]:
        """Path -> content at a revision; empty where there is no such repository."""
        with self.lock:
            if repo not in self.repos:
                return {}
            commit = self.repos[repo].commit(revision)
            return {path: self.blobs[entry.sha256] for path, entry in commit.files.items()}

    def history(self, repo: str, revision: str = "main") -> list[Commit]:
        """Commits, newest first; the first one made the repository."""
        with self.lock:
            return list(self.repos[repo].history(revision)) if repo in self.repos else []

    def received(self) -> bytes:
        """Every byte that clients sent: addresses, headers, bodies, and file contents as they were before encoding."""
        with self.lock:
            asked = [
                f"{one.method} {unquote(one.path)}?{unquote(one.query)} {one.headers}\n".encode() + one.body
                for one in self.requests
            ]
            return b"\n".join([*asked, *self.blobs.values()])

    def count(self, pattern: str, status: int | None = None) -> int:
        """How many requests fit ``METHOD path``, and were answered with that status."""
        fits = re.compile(pattern)
        with self.lock:
            return sum(
                bool(fits.search(f"{one.method} {one.path}")) and status in (None, one.status)
                for one in self.requests
            )

    # what a test arranges

    def fail(
        self, pattern: str, status: int = 503, *, times: int = 1, landed: bool = False,
        headers: dict[str, str] | None = None, cut: int | None = None,
    ) -> None:  # fmt: skip
        """Answer the next ``times`` requests that fit with ``status``; ``landed``: after they were carried out.

        With ``cut`` the true answer breaks off after so many bytes of its body. Status 0 closes the connection.
        """
        with self.lock:
            self._faults.append(Fault(re.compile(pattern), status, times, landed, headers or {}, cut))

    def before(self, pattern: str, action: Callable[[], object]) -> None:
        """Run ``action`` once, before the next request that fits is served; the one after it gets the next action."""
        with self.lock:
            self._hooks.append((re.compile(pattern), action))

    def forget_faults(self) -> None:
        """Nothing more goes wrong, and no action waits."""
        with self.lock:
            self._faults.clear()
            self._hooks.clear()

    def put(self, repo: str, files: dict[str, bytes], *, private: bool = False, gated: bool = False) -> str:
        """Commit files past the clients; makes the repository where there is none. The new head."""
        with self.lock:
            found = self.repos.get(repo) or self._create(repo, private=private)
            found.gated = gated or found.gated
            new = dict(found.commit("main").files)
            for path, content in files.items():
                new[path] = self.store(path, content)
            return found.add("main", new, "put by a test", "", "second").oid

    # what the handler calls

    def store(self, path: str, content: bytes) -> Entry:
        entry = entry_of(content, lfs=is_lfs(path, len(content)))
        self.blobs[entry.sha256] = content
        return entry

    def _create(self, name: str, *, private: bool) -> Repo:
        repo = self.repos[name] = Repo(name, private)
        attributes = self.store(".gitattributes", b"*.parquet filter=lfs diff=lfs merge=lfs -text\n")
        repo.add("main", {".gitattributes": attributes}, "initial commit", "", "writer")
        return repo

    def create(self, name: str, private: bool) -> Repo | None:
        """The new repository; None where there is one of that name."""
        with self.lock:
            return None if name in self.repos else self._create(name, private=private)

    def fault_for(self, asked: str) -> Fault | None:
        with self.lock:
            for fault in self._faults:
                if fault.pattern.search(asked):
                    fault.times -= 1
                    if fault.times <= 0:
                        self._faults.remove(fault)
                    return fault
        return None

    def run_hook(self, asked: str) -> None:
        with self.lock:
            due = next((hook for hook in self._hooks if hook[0].search(asked)), None)
            if due:
                self._hooks.remove(due)
        if due:
            due[1]()


if __name__ == "__main__":
    with HubStandIn() as standing:
        print(standing.url, flush=True)
        while True:
            time.sleep(3600)
