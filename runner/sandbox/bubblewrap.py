"""Sandboxes of kernel namespaces, made by ``bwrap``: the embedded default where no container engine answers.

One long-lived ``bwrap`` per phase, whose main process only waits for its lease to pass or for its standard input to
close, which happens by itself when the runner dies; its end is the end of everything in its pid namespace. Commands
enter these namespaces with ``nsenter`` and drop to an unprivileged uid with ``setpriv``.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from runner.sandbox import bubblewrap_layout as layout
from runner.sandbox import cgroups, endcall, files, selftest
from runner.sandbox.base import (
    Availability,
    ExecResult,
    Mount,
    Protection,
    Role,
    SandboxDead,
    SandboxSpec,
    SandboxUnavailable,
)
from runner.sandbox.bubblewrap_exec import BubblewrapCommand, Running
from runner.sandbox.disk import DiskMeter
from runner.sandbox.inside import CALL_VARIABLE, OWNER_VARIABLE, CallMarks, checked, environment, ids, workdir
from runner.sandbox.owner import Owner
from runner.sandbox.supervise import supervise

HOST_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
MIB = 1024 * 1024
START_PATIENCE = 20.0
KILL_PATIENCE = 15.0
TOOLS = ("nsenter", "setpriv", "prlimit", "timeout", "env")


class BubblewrapBackend:
    """The back end that needs no engine and no image."""

    name = "bubblewrap"

    def available(self) -> Availability:
        try:
            program = layout.find_bwrap()
        except SandboxUnavailable as error:
            return Availability(False, str(error))
        missing = [tool for tool in TOOLS if not shutil.which(tool)]
        if missing:
            return Availability(False, f"{', '.join(missing)} not found; install util-linux and coreutils")
        try:
            checked_once()
        except SandboxUnavailable as error:
            return Availability(False, str(error))
        return Availability(True, f"{program}, limits by {_limits_note()}")

    def protections(self) -> tuple[Protection, ...]:
        grouped = _controllers()
        root = os.getuid() == 0

        def limit(name: str, substitute: str) -> Protection:
            if name in grouped:
                return Protection(name, "full", "control group")
            return Protection(name, "partial" if substitute else "none", substitute)

        return (
            Protection(
                "network", "full", "none at all; when open, the host's own, its local services included"
            ),
            Protection("uid", "full", f"commands run as uid {ids()[0]}")
            if root
            else Protection("uid", "partial", "the runner's own: what is inside can end its sandbox"),
            Protection("capabilities", "full", "all dropped"),
            Protection("no_new_privs", "full"),
            Protection("seccomp", "none", "no filter of system calls; user namespaces can be made inside"),
            Protection(
                "kernel", "partial", "the host's; Docker with gVisor or Kata puts another one in between"
            ),
            limit("memory", "address space of each process, not their sum"),
            limit("pids", "" if root else "processes of this user"),
            limit("cpu", ""),
            Protection(
                "disk", "partial", "size and number of files, looked at from the host about once a second"
            ),
            Protection("fsize", "full", "no single file larger than the disk cap"),
            Protection("read_only_root", "full"),
            Protection(
                "private_data", "full", "only system folders, Python and the mounts of the phase exist inside"
            ),
            Protection("dead_mans_switch", "full", "ends with the runner, or with its lease"),
            Protection("gpu", "none", "use Docker for GPUs"),
        )

    def create(self, spec: SandboxSpec) -> BubblewrapSandbox:
        if spec.gpus:
            raise SandboxUnavailable("bubblewrap gives no GPU; use --sandbox docker")
        checked_once()
        return BubblewrapSandbox(spec)

    def environment_digest(self, role: Role) -> str:
        return layout.environment_digest(role)

    def reap(self) -> list[str]:
        ended = []
        for process in _processes_of(Owner.is_dead):
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
                ended.append(f"process {process}")
        return ended + cgroups.reap()


class BubblewrapSandbox:
    """One set of namespaces and the commands in it; see ``runner.sandbox.base.Sandbox``."""

    def __init__(self, spec: SandboxSpec) -> None:
        self.spec = spec
        self._marks = CallMarks()
        self._calls = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._init = 0
        self._init_handle: int | None = None
        self._group: cgroups.Cgroup | None = None
        self._began = 0.0
        self._disk = DiskMeter((mount.source for mount in spec.mounts if mount.writable), spec.disk_mb)

    def start(self) -> None:
        files.prepare(self.spec)
        self._began = time.monotonic()
        name = cgroups.name_for(Owner.current(), secrets.token_hex(6))
        self._group = cgroups.create(
            name, cgroups.Limits(self.spec.memory_mb * MIB, self.spec.pids, self.spec.cpus)
        )
        try:
            self._launch()
        except BaseException:
            self.stop()
            raise

    def exec(
        self,
        argv: Sequence[str],
        *,
        deadline: float,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        on_output: Callable[[bytes], None] | None = None,
    ) -> ExecResult:
        if self._group and self._group.is_crowded():
            self._group.kill_children()  # what earlier calls left behind leaves no room for a command
        command = BubblewrapCommand(self, checked(argv), stdin, env or {}, cwd or workdir(self.spec))
        return supervise(command, deadline=deadline, disk=self._disk, on_output=on_output)

    def put(self, files_: Mapping[str, bytes]) -> None:
        files.put(self.spec, files_)

    def get(self, path: str, limit: int = 16 * MIB) -> bytes:
        return files.get(self.spec, path, limit)

    def alive(self) -> bool:
        return self._init_handle is not None and not _ended(self._init_handle)

    def stop(self) -> None:
        init, self._init_handle = self._init_handle, None
        if init is not None:
            _kill(init)  # its pid namespace, and all in it, end with it
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()
        group, self._group = self._group, None
        if group is not None:
            group.remove()

    def __enter__(self) -> BubblewrapSandbox:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def run(self, argv: Sequence[str], mark: str, env: Mapping[str, str], cwd: str, stdin: int) -> Running:
        """Start a command in the namespaces, as the unprivileged uid and in a group of its own."""
        self.raise_if_dead(patience=0)
        self._calls += 1
        group = self._group.child(f"call{self._calls}") if self._group else None
        variables = {"PATH": layout.PATH, **environment(self.spec), **env, CALL_VARIABLE: mark}
        command = [
            *layout.join(group),
            *layout.enter(self._init),
            *layout.restrict(self.spec, self._group),
            *("env", "-i", "-C", cwd, *(f"{name}={value}" for name, value in variables.items()), *argv),
        ]
        process = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            env={"PATH": HOST_PATH},
            cwd="/",
            start_new_session=True,
        )
        return Running(process, group)

    def next_mark(self) -> str:
        return self._marks.next()

    def end_call(self, running: Running, mark: str) -> None:
        """Kill what belongs to a call: its control group, or else what carries its mark; all when that fails."""
        if running.group is not None:
            # nsenter buries its child and ends; were it killed first, the host's first process would have to
            if running.group.kill(spared=running.process.pid):
                return
        else:
            script = Path(endcall.__file__).read_text()
            argv = ["python3", "-I", "-S", "-c", script, CALL_VARIABLE, mark]
            with contextlib.suppress(subprocess.TimeoutExpired):
                killer = self.run(argv, self._marks.first(), {}, "/", subprocess.DEVNULL)
                killer.process.communicate(timeout=KILL_PATIENCE)
                if killer.process.returncode == 0:
                    return
        self.stop()
        raise SandboxDead("a command could not be ended at its deadline, so the sandbox was ended instead")

    def oom_kills(self) -> int:
        return self._group.oom_kills() if self._group else 0

    def forget(self, running: Running) -> None:
        if running.group is not None and self._group is not None:
            running.group.remove_if_empty(self._group)

    def raise_if_dead(self, patience: float = 0.1) -> None:
        """The first process of the namespace ends last, a moment after those it takes along."""
        if self._init_handle is None:
            raise SandboxDead("the sandbox was stopped, or never started")
        if not _ended(self._init_handle, patience):
            return
        age = time.monotonic() - self._began
        lease = self.spec.lease_seconds
        why = f"its lease of {lease} s passed" if age >= lease else "it was killed, or its first process was"
        raise SandboxDead(f"the sandbox ended {age:.0f} s after its start: {why}")

    def _launch(self) -> None:
        """Start ``bwrap`` and wait until its main process, and with it the whole layout, stands."""
        owner = str(Owner.current())
        info_read, info_write = os.pipe()
        with layout.arguments(self.spec, info_write, self._marks.first(), owner) as (arguments, descriptors):
            try:
                self._process = subprocess.Popen(
                    [*layout.join(self._group), *arguments],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    pass_fds=descriptors,
                    env={"PATH": HOST_PATH, OWNER_VARIABLE: owner},
                    cwd="/",
                    start_new_session=True,
                )
            finally:
                os.close(info_write)
        with os.fdopen(info_read, "rb", buffering=0) as info:
            self._await_ready(self._process)
            self._init = int(json.loads(info.read(4096))["child-pid"])
        self._init_handle = os.pidfd_open(self._init)

    def _await_ready(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            ready = selector.select(START_PATIENCE) and process.stdout.read(1)
        if not ready:
            process.kill()
            words = process.stderr.read(4096).decode(errors="replace").strip()
            raise SandboxUnavailable(f"bubblewrap did not start: {words or 'no message'}")


@cache
def checked_once() -> None:
    """Prove in a throw-away sandbox, once a process, that the walls stand.

    Raises
    ------
    SandboxUnavailable
        ``bwrap`` does not work here, or something inside was possible that must not be.
    """
    with tempfile.TemporaryDirectory() as folder:
        spec = SandboxSpec(
            "agent", "self-test", (), memory_mb=128, pids=24, cpus=1, disk_mb=64, lease_seconds=60
        )
        with BubblewrapSandbox(
            replace(spec, mounts=(Mount(Path(folder), "/workspace", writable=True),))
        ) as sandbox:
            selftest.check(sandbox, limited=bool(_controllers() & {"memory", "pids"}) or os.getuid() != 0)


def _kill(handle: int) -> None:
    """Kill a process by its descriptor, and return when it has ended."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    _ended(handle, patience=KILL_PATIENCE)
    os.close(handle)


def _ended(handle: int, patience: float = 0.0) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(handle, selectors.EVENT_READ)
        return bool(selector.select(patience))


def _controllers() -> frozenset[str]:
    parents = cgroups.writable_parents()
    return frozenset(parents.folders) if parents else frozenset()


def _limits_note() -> str:
    names = sorted(_controllers())
    return f"control groups ({', '.join(names)})" if names else "rlimits only, no control group can be made"


def _processes_of(dead: Callable[[Owner], bool]) -> Iterator[int]:
    """Pids of the processes that make sandboxes, chosen by their owner."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            owner = _owner_of(folder)
            if owner and dead(owner):
                yield int(folder.name)


def _owner_of(process: Path) -> Owner | None:
    try:
        environ = (process / "environ").read_bytes()
    except OSError:
        return None
    for entry in environ.split(b"\0"):
        name, _, value = entry.partition(b"=")
        if name == OWNER_VARIABLE.encode():
            return Owner.parse(value.decode(errors="replace"))
    return None
