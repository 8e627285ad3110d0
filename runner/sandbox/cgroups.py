"""Control groups by hand: limits on memory, processes and CPU of a sandbox, and exactly who belongs to a call.

Version 1 where its hierarchies are mounted and writable, else a version 2 that is writable or delegated.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from runner.sandbox.owner import Owner

ROOT = Path("/sys/fs/cgroup")
PREFIX = "automedbench"
CONTROLLERS = ("memory", "pids", "cpu")
CPU_PERIOD = 100_000

ROOM = 4
"""Processes that entering a sandbox and starting a command takes."""


@dataclass(frozen=True)
class Limits:
    memory_bytes: int
    pids: int
    cpus: float


@dataclass(frozen=True)
class Parents:
    """The folders new groups may be made in; one a controller in version 1, a single one in version 2."""

    version: int
    folders: dict[str, Path]


class Cgroup:
    """One group in every hierarchy that is to be had."""

    def __init__(self, version: int, folders: dict[str, Path]) -> None:
        self._version = version
        self._folders = folders

    @property
    def controllers(self) -> frozenset[str]:
        return frozenset(self._folders)

    def join_files(self) -> list[Path]:
        """Files a process writes ``0`` to in order to enter."""
        return sorted({folder / "cgroup.procs" for folder in self._folders.values()})

    def child(self, name: str) -> Cgroup:
        """A group below this one that has no limits of its own and only tells who belongs together."""
        parent = self._tracked()
        folder = parent / name
        folder.mkdir(exist_ok=True)
        return Cgroup(
            self._version, {key: folder if old == parent else old for key, old in self._folders.items()}
        )

    def _tracked(self) -> Path:
        """The folder whose members tell who belongs to the group."""
        return self._folders.get("pids") or next(iter(self._folders.values()))

    def oom_kills(self) -> int:
        return 0 if "memory" not in self._folders else read_oom_kills(self._folders["memory"])

    def kill(self, spared: int | None = None, patience: float = 5.0) -> bool:
        """Kill all members but one, those forked meanwhile included; whether none is left."""
        give_up = time.monotonic() + patience
        with self.no_forks():
            while victims := [pid for pid in self.members() if pid != spared]:
                for pid in victims:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                if time.monotonic() > give_up:
                    return False
                time.sleep(0.002)
        return True

    def members(self) -> list[int]:
        try:
            return [int(pid) for pid in (self._tracked() / "cgroup.procs").read_text().split() if pid != "0"]
        except OSError:
            return []

    @contextlib.contextmanager
    def no_forks(self) -> Iterator[None]:
        """Forbid new processes for a while, where this runner may."""
        limit = self._tracked() / "pids.max"
        try:
            before = limit.read_text()
            limit.write_text("0")
        except OSError:
            yield
            return
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                limit.write_text(before)

    def kill_children(self) -> None:
        """Kill the members of all groups below this one."""
        for folder in _below(self._tracked()):
            Cgroup(self._version, {"pids": folder}).kill()

    def is_crowded(self) -> bool:
        """Whether so many processes run that a further command might not even start."""
        folder = self._tracked()
        try:
            current, most = ((folder / name).read_text().strip() for name in ("pids.current", "pids.max"))
        except OSError:
            return False
        return most.isdigit() and int(current) + ROOM > int(most)

    def can_be_killed_in(self) -> bool:
        return os.access(self._tracked() / "cgroup.procs", os.W_OK)

    def remove(self, patience: float = 2.0) -> None:
        """Remove the empty group and those below it; the kernel may need a moment after the last member's end."""
        for folder in set(self._folders.values()):
            _remove(folder, time.monotonic() + patience)

    def remove_if_empty(self, below: Cgroup) -> None:
        """Remove this call's group, unless background jobs of the call live on in it."""
        for folder in set(self._folders.values()) - set(below._folders.values()):
            with contextlib.suppress(OSError):
                folder.rmdir()


def create(name: str, limits: Limits) -> Cgroup | None:
    """A new group with these limits, or None where groups cannot be made."""
    parents = writable_parents()
    if parents is None:
        return None
    folders: dict[str, Path] = {}
    for controller, parent in parents.folders.items():
        folder = parent / name
        try:
            folder.mkdir(exist_ok=True)
            for file, value in _settings(parents.version, controller, limits):
                (folder / file).write_text(value)
        except OSError:
            continue
        folders[controller] = folder
    _limit_swap(parents.version, folders.get("memory"), limits)
    return Cgroup(parents.version, folders) if folders else None


def of_container(identity: str) -> Cgroup | None:
    """The groups an engine on this machine made for a container; None when they are out of sight (a remote engine)."""
    names = (f"docker/{identity}", f"system.slice/docker-{identity}.scope")
    for name in names:
        if (ROOT / "memory" / name).is_dir():
            return Cgroup(1, {controller: ROOT / controller / name for controller in ("memory", "pids")})
        if (ROOT / name).is_dir():
            return Cgroup(2, dict.fromkeys(("memory", "pids"), ROOT / name))
    return None


def name_for(owner: Owner, sandbox: str) -> str:
    return f"{PREFIX}.{owner}.{sandbox}"


def reap() -> list[str]:
    """Kill and remove the groups of dead runners; the names of what was removed."""
    parents = writable_parents()
    stale: dict[str, dict[str, Path]] = {}
    for controller, parent in parents.folders.items() if parents else ():
        for folder in parent.glob(f"{PREFIX}.*"):
            owner = Owner.parse(folder.name.split(".")[1])
            if owner and owner.is_dead():
                stale.setdefault(folder.name, {})[controller] = folder
    for folders in stale.values():
        group = Cgroup(parents.version if parents else 1, folders)
        group.kill()
        group.kill_children()
        group.remove()
    return sorted(stale)


def read_oom_kills(folder: Path) -> int:
    """How often the kernel killed in a memory group; 0 when it cannot be told."""
    for name in ("memory.oom_control", "memory.events"):
        with contextlib.suppress(OSError):
            return parse_oom_kills((folder / name).read_text())
    return 0


def parse_oom_kills(text: str) -> int:
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("oom_kill "))


@cache
def writable_parents() -> Parents | None:
    """Where this process may make groups: below its own, or in version 2 in the nearest delegated ancestor."""
    own = _own_groups()
    version1 = {
        controller: folder
        for controller in CONTROLLERS
        if controller in own and _can_make(folder := ROOT / controller / own[controller].lstrip("/"))
    }
    if version1:
        return Parents(1, version1)
    return _version2(own.get("")) if (ROOT / "cgroup.controllers").exists() else None


def _version2(own: str | None) -> Parents | None:
    folder = ROOT / (own or "/").lstrip("/")
    for candidate in (folder, *folder.parents):
        if not candidate.is_relative_to(ROOT):
            break
        enabled = _words(candidate / "cgroup.subtree_control")
        if (
            {"memory", "pids"} <= enabled
            and _can_make(candidate)
            and os.access(candidate / "cgroup.procs", os.W_OK)
        ):
            return Parents(2, {name: candidate for name in CONTROLLERS if name in enabled})
    return None


def _own_groups() -> dict[str, str]:
    """Controller to path of this process's group; the key of version 2 is empty."""
    groups = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        groups.update(dict.fromkeys(controllers.split(","), path))
    return groups


def _can_make(parent: Path) -> bool:
    probe = parent / f"{PREFIX}-probe-{os.getpid()}"
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError:
        return False
    return True


def _settings(version: int, controller: str, limits: Limits) -> Iterable[tuple[str, str]]:
    quota = str(max(1000, int(limits.cpus * CPU_PERIOD)))
    return {
        (1, "memory"): [("memory.limit_in_bytes", str(limits.memory_bytes))],
        (1, "pids"): [("pids.max", str(limits.pids))],
        (1, "cpu"): [("cpu.cfs_period_us", str(CPU_PERIOD)), ("cpu.cfs_quota_us", quota)],
        (2, "memory"): [("memory.max", str(limits.memory_bytes))],
        (2, "pids"): [("pids.max", str(limits.pids))],
        (2, "cpu"): [("cpu.max", f"{quota} {CPU_PERIOD}")],
    }[version, controller]


def _limit_swap(version: int, folder: Path | None, limits: Limits) -> None:
    """No swap on top of the memory; kernels without swap accounting lack the file."""
    if folder is None:
        return
    file, value = (
        ("memory.memsw.limit_in_bytes", str(limits.memory_bytes))
        if version == 1
        else ("memory.swap.max", "0")
    )
    with contextlib.suppress(OSError):
        (folder / file).write_text(value)


def _words(file: Path) -> set[str]:
    try:
        return set(file.read_text().split())
    except OSError:
        return set()


def _below(folder: Path) -> list[Path]:
    """All groups below one, the innermost first."""
    return sorted((group for group in folder.rglob("*/") if group.is_dir()), reverse=True)


def _remove(folder: Path, give_up: float) -> None:
    for group in [*_below(folder), folder]:
        while group.exists():
            try:
                group.rmdir()
            except OSError:
                if time.monotonic() > give_up:
                    return
                time.sleep(0.01)
