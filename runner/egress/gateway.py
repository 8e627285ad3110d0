"""One run's way out: a private folder with the socket, shown inside read-only, and the threads behind it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import select
import socket
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from runner.egress.index import package_index
from runner.egress.ledger import Ledger
from runner.egress.rules import Endpoint, Rules
from runner.errors import EnvironmentProblem
from runner.sandbox.base import Mount
from runner.sandbox.inside import ids
from runner.scratch import scratch_folder
from tasks.names import Network
from tasks.schema import Task

if TYPE_CHECKING:
    from runner.egress.proxy import Proxy

INSIDE = "/opt/egress"
SOCKET, FORWARDER, CERTIFICATES = "proxy.sock", "forward.py", "certificates.pem"
PORT = 3128

# Looked up in the kernel's table, which costs a millisecond; a Python that would find the port taken costs twenty.
_TABLE = f" 0100007F:{PORT:04X} 00000000:0000 0A "
_START = f"grep -qs '{_TABLE}' /proc/net/tcp || python3 -IS {INSIDE}/{FORWARDER} </dev/null; "


@dataclass(frozen=True)
class Opening:
    """What a sandbox needs of its way out; nothing where there is none.

    ``before_call`` is shell text that goes before every call: it starts the forwarder where it does not run.
    """

    mounts: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    before_call: str = ""


def require_egress(network: Network) -> None:
    """Refuse before a run is laid out what would fail when it starts; see :func:`egress`."""
    if network == "allowlist":
        if importlib.util.find_spec("h11") is None:
            raise EnvironmentProblem(
                "the proxy of --network allowlist needs the package h11; install it, or choose --network none"
            )
        package_index()


@contextlib.contextmanager
def egress(network: Network, task: Task, log: Path) -> Iterator[Opening]:
    """Open the way out of one run; everything of it is gone afterwards but ``log``.

    Raises
    ------
    EnvironmentProblem
        ``network`` is ``allowlist`` and no proxy can be had here.
    UsageProblem
        The operator's package index is no address.
    """
    if network != "allowlist":
        yield Opening()
        return
    require_egress(network)
    index = package_index()
    with contextlib.ExitStack() as stack:
        try:
            inside = _lay_out(stack.enter_context(scratch_folder()), index.certificates)
            listener = _listen(inside)
        except OSError as error:
            raise EnvironmentProblem(
                f"the proxy's socket cannot be made below {tempfile.gettempdir()} ({error.strerror}); set TMPDIR to a "
                "folder on a local disk, or choose --network none"
            ) from None
        server = _Server(listener, task, log, index.endpoints)
        server.start()
        stack.callback(server.stop)
        yield Opening(
            mounts=(Mount(inside, INSIDE),),
            env={**_proxy_variables(), **index.environment(f"{INSIDE}/{CERTIFICATES}")},
            before_call=_START,
        )


class _Server(threading.Thread):
    """Waits for the first connection before it loads anything: most runs of most agents never make one."""

    def __init__(
        self, listener: socket.socket, task: Task, log: Path, operator: tuple[Endpoint, ...]
    ) -> None:
        super().__init__(name="egress-accept", daemon=True)
        self._listener = listener
        self._task = task
        self._ledger = Ledger(log)
        self._operator = operator
        self._proxy: Proxy | None = None

    def run(self) -> None:
        waiting = select.poll()
        waiting.register(self._listener, select.POLLIN)
        if any(state & select.POLLHUP for _, state in waiting.poll()):
            return
        from runner.egress.proxy import Proxy

        self._proxy = Proxy(Rules.of(self._task.source, self._operator), self._ledger)
        self._proxy.serve(self._listener)

    def stop(self) -> None:
        """End it and every connection; the log is complete when this returns."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self.join()
        if self._proxy is not None:
            self._proxy.close()
        self._ledger.close()
        self._listener.close()


def _lay_out(folder: Path, certificates: bytes | None) -> Path:
    """What is shown inside, in a folder that is closed to everybody else on the host."""
    inside = folder / "inside"
    inside.mkdir()
    inside.chmod(0o755)
    forwarder = Path(__file__).with_name(FORWARDER).read_bytes()
    for name, content in ((FORWARDER, forwarder), (CERTIFICATES, certificates)):
        if content is not None:
            (inside / name).write_bytes(content)
            (inside / name).chmod(0o444)
    return inside


def _listen(folder: Path) -> socket.socket:
    """Listen on a socket that only the uid inside can connect to."""
    listener = socket.socket(socket.AF_UNIX)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listener.bind(f"/proc/self/fd/{handle}/{SOCKET}")  # the address of a socket holds no long path
        os.chown(SOCKET, *ids(), dir_fd=handle)
        os.chmod(SOCKET, 0o600, dir_fd=handle)
        listener.listen(128)
    except BaseException:
        listener.close()
        raise
    finally:
        os.close(handle)
    return listener


def _proxy_variables() -> dict[str, str]:
    proxy, direct = f"http://127.0.0.1:{PORT}", "localhost,127.0.0.1,::1"
    variables = {"http_proxy": proxy, "https_proxy": proxy, "no_proxy": direct}
    return variables | {name.upper(): value for name, value in variables.items()}
