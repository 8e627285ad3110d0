"""Ask from inside whether the walls stand. A back end that fails this is not used."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

from runner.sandbox.base import Sandbox, SandboxUnavailable
from runner.sandbox.inside import SITE, ids

DEADLINE = 30.0

PROBE = r"""
import json, os, socket, sys
host_files = json.loads(sys.argv[1])

def attempt(action):
    try:
        action()
    except OSError as error:
        return type(error).__name__
    return "done"

def connect(address):
    with socket.socket() as client:
        client.settimeout(1)
        client.connect(tuple(address))

def fork_until_refused():
    children = []
    try:
        while len(children) < 200:
            child = os.fork()
            if child == 0:
                import signal
                signal.pause()
            children.append(child)
    finally:
        for child in children:
            os.kill(child, 9)
            os.waitpid(child, 0)

status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps({
    "python": sys.version, "packages": os.path.isdir(sys.argv[3]), "uid": os.getuid(),
    "CapEff": status["CapEff"].strip(),
    "NoNewPrivs": status["NoNewPrivs"].strip(),
    "reached": attempt(lambda: connect(json.loads(sys.argv[2]))),
    "interfaces": [name for _, name in socket.if_nameindex()],
    "visible": [path for path in host_files if os.path.lexists(path)],
    "usr": attempt(lambda: open("/usr/x", "w")), "root": attempt(lambda: open("/x", "w")),
    "etc": attempt(lambda: open("/etc/passwd", "r+")),
    "workspace": attempt(lambda: open("/workspace/x", "w")),
    "forks": attempt(fork_until_refused),
}))
"""


def check(sandbox: Sandbox, limited: bool) -> None:
    """Run the probe in a started sandbox with no network and few processes.

    Parameters
    ----------
    sandbox
        Has ``/workspace`` writable.
    limited
        Whether this machine can limit the number of processes at all.

    Raises
    ------
    SandboxUnavailable
        One of the walls does not stand; the message says which.
    """
    secrets = [str(path) for path in (Path(__file__), *_entries_of_home())]
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = json.dumps(server.getsockname()[:2])
        argv = ["python3", "-I", "-c", PROBE, json.dumps(secrets), address, SITE]
        result = sandbox.exec(argv, deadline=DEADLINE)
    try:
        seen = json.loads(result.output)
    except ValueError:
        words = result.output.decode(errors="replace").strip()
        raise SandboxUnavailable(f"the sandbox's self-test did not run: {words or result}") from None
    failures = [name for name, stands in _walls(seen, limited).items() if not stands]
    if failures:
        raise SandboxUnavailable(
            f"the sandbox failed its self-test ({', '.join(failures)}), so it is not used: {seen}"
        )


def _walls(seen: dict[str, object], limited: bool) -> dict[str, bool]:
    return {
        "Python": seen["python"] == sys.version,
        "packages": seen["packages"] is True,
        "uid": seen["uid"] == ids()[0],
        "capabilities": int(str(seen["CapEff"]), 16) == 0,
        "no_new_privs": seen["NoNewPrivs"] == "1",
        "network": seen["reached"] != "done" and seen["interfaces"] == ["lo"],
        "private data": seen["visible"] == [],
        "read-only system": "done" not in (seen["usr"], seen["root"], seen["etc"]),
        "writable workspace": seen["workspace"] == "done",
        "number of processes": seen["forks"] == "BlockingIOError" or not limited,
    }


def _entries_of_home() -> list[Path]:
    """Files and folders of the runner's home, but for those on the way to its interpreter."""
    home, prefix = Path.home(), Path(sys.base_prefix)
    try:
        entries = sorted(home.iterdir())[:200]
    except OSError:
        return []
    return [
        entry for entry in entries if not prefix.is_relative_to(entry) and not entry.is_relative_to("/usr")
    ]
