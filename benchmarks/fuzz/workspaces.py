"""Bytes as the building plan of an untrusted workspace, which is then collected."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from evaluator.files import sha256_file
from evaluator.submission import CollectLimits, changed_since_collection, collect, load_submission_manifest
from runner.sandbox.base import AGENT_UID
from tasks import load_task

CASES = ("case-a", "case-b", "case-c")
SECRET = b"the answer that must not be collected"
LIMITS = CollectLimits(file_bytes=5000, total_bytes=12_000, plan_bytes=3000, listed=10, scanned=200)
_TASK = load_task("kidney-seg-task")
_FILES = _TASK.output.filenames

NAMES: tuple[bytes, ...] = (
    *(b"outputs", b"plan.md", b"plan.png", *(case.encode() for case in CASES), *(name.encode() for name in _FILES)),
    *(b"manifest.json", b".process", b"x" * 255, b"\xff\xfe", "ü\u202e\n".encode(), b"\x1b[2J", b"report.json", b"a"),
)  # fmt: skip


def collect_whatever_it_is(program: bytes, folder: Path) -> str:
    """Build a workspace from ``program`` and collect it; every promise of the collector is looked at."""
    for old in ("workspace", "collected", "outside"):
        shutil.rmtree(folder / old, ignore_errors=True)
    folder.chmod(0o755)  # the agent's uid must be able to come here
    outside = folder / "outside"
    outside.mkdir()
    for name in _FILES:
        (outside / name).write_bytes(SECRET)
        (outside / name).chmod(0o666)  # where links are restricted, only what one may write can be linked to
    workspace = folder / "workspace"
    workspace.mkdir()
    built = _build(program, workspace, outside)
    collect(workspace, folder / "collected", _TASK, CASES, LIMITS)
    _require_promises(folder / "collected")
    assert sorted(path.name for path in folder.iterdir()) == ["collected", "outside", "workspace"]
    assert all((outside / name).read_bytes() == SECRET for name in _FILES)
    manifest = load_submission_manifest(folder / "collected")
    assert manifest is not None
    codes = sorted({problem.code for problem in manifest.problems})
    return f"{sorted(built)} {codes} {len(manifest.files)} {len(manifest.process)} {manifest.others_complete}"


def _require_promises(collected: Path) -> None:
    manifest = load_submission_manifest(collected)
    assert manifest is not None
    wanted = {f"{case}/{name}" for case in CASES for name in _FILES}
    listed = {file.path: file for file in manifest.files}
    assert listed.keys() <= wanted
    assert listed.keys().isdisjoint(problem.path for problem in manifest.problems)
    assert listed.keys() | {p.path for p in manifest.problems} >= wanted
    listed |= {f".process/{file.path}": file for file in manifest.process}
    total = 0
    for path in collected.rglob("*"):
        info = path.lstat()
        if stat.S_ISDIR(info.st_mode):
            continue
        name = path.relative_to(collected).as_posix()
        assert stat.S_ISREG(info.st_mode), name
        assert info.st_nlink == 1, name
        assert SECRET not in path.read_bytes(), name
        if name != "manifest.json":
            total += info.st_size
            assert listed[name].sha256 == sha256_file(path), name
            assert info.st_size == listed[name].size <= LIMITS.file_bytes, name
    assert total <= LIMITS.total_bytes + 2 * LIMITS.plan_bytes
    assert len(manifest.others) <= LIMITS.listed
    assert changed_since_collection(collected) is None


def _build(program: bytes, workspace: Path, outside: Path) -> set[str]:
    """Three bytes a step: what to make, where, and with which argument. Steps that cannot be done are left out.

    Every step is done with the agent's uid where we are root, and none through a link: what is planted here must not
    be able to hurt the machine that fuzzes.
    """
    done: set[str] = set()
    with _as_the_agent(workspace):
        for kind, where, argument in _steps(program):
            make = _MAKERS[kind % len(_MAKERS)]
            place = _place(workspace, where)
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                if place.parent.resolve().is_relative_to(workspace.resolve()) and not place.is_symlink():
                    make(place, argument, outside)
                    done.add(make.__name__)
            except (OSError, ValueError):
                continue
    return done


@contextlib.contextmanager
def _as_the_agent(workspace: Path) -> Iterator[None]:
    if os.geteuid() != 0:
        yield
        return
    os.chown(workspace, AGENT_UID, AGENT_UID)
    os.setegid(AGENT_UID)
    os.seteuid(AGENT_UID)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def _steps(program: bytes) -> Iterator[tuple[int, int, int]]:
    for at in range(0, min(len(program), 240) - 2, 3):
        yield program[at], program[at + 1], program[at + 2]


def _place(workspace: Path, where: int) -> Path:
    """Most places are those that the collector looks at."""
    name = os.fsdecode(NAMES[where % len(NAMES)])
    if where < 128:
        case = CASES[where % len(CASES)]
        return workspace / "outputs" / case / _FILES[(where >> 2) % len(_FILES)]
    if where < 192:
        return workspace / "outputs" / name
    return workspace / name


Maker = Callable[[Path, int, Path], object]
"""Makes something at a place that is no link; gets an argument and the folder that must stay unseen."""


def write(place: Path, size: int, _: Path) -> None:
    with place.open("xb") as file:
        file.write(bytes([size]) * (size * 24))


def empty(place: Path, _: int, __: Path) -> None:
    place.open("xb").close()


def sparse(place: Path, size: int, _: Path) -> None:
    with place.open("xb") as file:
        file.truncate(size << 24)


def folder(place: Path, _: int, __: Path) -> None:
    place.mkdir()


def link(place: Path, which: int, outside: Path) -> None:
    targets = (outside / _FILES[0], outside, outside / "nowhere", Path(".."), place)
    place.symlink_to(targets[which % len(targets)])


def hard_link(place: Path, which: int, outside: Path) -> None:
    place.hardlink_to(outside / _FILES[which % len(_FILES)])


def fifo(place: Path, _: int, __: Path) -> None:
    os.mkfifo(place)


def socket_(place: Path, _: int, __: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place))


def mode(place: Path, bits: int, _: Path) -> None:
    place.chmod(bits << 1 & 0o777)


def remove(place: Path, _: int, __: Path) -> None:
    if place.is_dir():
        place.rmdir()
    else:
        place.unlink()


def move(place: Path, where: int, _: Path) -> None:
    place.rename(place.parent / os.fsdecode(NAMES[where % len(NAMES)]))


def crowd(place: Path, many: int, _: Path) -> None:
    place.mkdir(exist_ok=True)
    for number in range(many):
        (place / str(number)).touch()


_MAKERS: tuple[Maker, ...] = (
    *(write, write, write, write, empty, sparse, folder, link, link, hard_link, fifo, socket_, mode, remove, move),
    crowd,
)  # fmt: skip
