"""The collector against a workspace that was built to hurt it."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator.submission import (
    CollectLimits,
    SubmissionManifest,
    collect,
    load_submission_manifest,
    missing_outputs,
    process_folder,
)

CASES = ["c1", "c2", "c3"]
PR_SET_DUMPABLE = 4


class _Output:
    filenames = ("report.txt",)


class _Task:
    id = "a-task"
    output = _Output()


TASK = _Task()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Three cases with a good report each."""
    return build(tmp_path)


def build(place: Path) -> Path:
    root = place / "workspace"
    for case in CASES:
        (root / "outputs" / case).mkdir(parents=True)
        (root / "outputs" / case / "report.txt").write_text(f"report of {case}")
    return root


def gather(workspace: Path, limits: CollectLimits | None = None) -> tuple[SubmissionManifest, Path]:
    destination = workspace.parent / "submission"
    manifest = collect(workspace, destination, TASK, CASES, limits or CollectLimits())
    return manifest, destination


def codes(manifest: SubmissionManifest) -> dict[str, str]:
    return {problem.path: problem.code for problem in manifest.problems}


def replace_c2(workspace: Path) -> Path:
    path = workspace / "outputs" / "c2" / "report.txt"
    path.unlink()
    return path


def test_honest_workspace_is_copied_with_digests(workspace: Path) -> None:
    (workspace / "plan.md").write_text("a plan")
    manifest, destination = gather(workspace)
    assert [file.path for file in manifest.files] == [f"{case}/report.txt" for case in CASES]
    for file in manifest.files:
        data = (destination / file.path).read_bytes()
        assert (file.size, file.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert manifest.problems == ()
    assert [file.path for file in manifest.process] == ["plan.md"]
    assert (process_folder(destination) / "plan.md").read_text() == "a plan"
    assert load_submission_manifest(destination) == manifest


def test_absent_case_is_missing(workspace: Path) -> None:
    replace_c2(workspace)
    (workspace / "outputs" / "c2").rmdir()
    manifest, _ = gather(workspace)
    assert codes(manifest) == {"c2/report.txt": "missing"}


def test_no_outputs_folder_means_all_missing(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    manifest, _ = gather(tmp_path / "workspace")
    assert set(codes(manifest).values()) == {"missing"}
    assert len(manifest.problems) == len(CASES)


def _symlink_to_secret(path: Path) -> None:
    secret = path.parents[3] / "secret"
    secret.write_text("SECRET")
    path.symlink_to(secret)


def _hard_link(path: Path) -> None:
    twin = path.with_name("twin")
    twin.write_text("twin")
    path.hardlink_to(twin)


def _socket(path: Path) -> None:
    here = os.open(path.parent, os.O_DIRECTORY)
    previous = Path.cwd()
    try:
        os.fchdir(here)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(previous)
        os.close(here)


def _sparse_terabyte(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


@pytest.mark.parametrize(
    ("plant", "code"),
    [
        (_symlink_to_secret, "link"),
        (lambda path: path.symlink_to("/nowhere/at/all"), "link"),
        (lambda path: path.symlink_to(path.name), "link"),
        (_hard_link, "hard_link"),
        (lambda path: os.mkfifo(path), "not_regular"),
        (_socket, "not_regular"),
        (lambda path: path.mkdir(), "not_regular"),
        (_sparse_terabyte, "too_large"),
        (lambda path: path.touch(), "empty"),
    ],
    ids=["symlink", "dangling", "loop", "hard_link", "fifo", "socket", "folder", "sparse_1TB", "empty"],
)
def test_planted_file_is_refused_by_name_and_others_survive(workspace: Path, plant, code: str) -> None:
    plant(replace_c2(workspace))
    assert len(missing_outputs(TASK, CASES, workspace / "outputs")) == 1
    started = time.monotonic()
    manifest, destination = gather(workspace)
    assert time.monotonic() - started < 2
    assert codes(manifest) == {"c2/report.txt": code}
    assert [file.path for file in manifest.files] == ["c1/report.txt", "c3/report.txt"]
    assert not (destination / "c2").exists()
    assert not any(b"SECRET" in path.read_bytes() for path in destination.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", ["outputs", "outputs/c2"])
def test_linked_folder_is_not_entered(workspace: Path, name: str) -> None:
    elsewhere = workspace.parent / "elsewhere"
    (workspace / name).rename(elsewhere)
    (workspace / name).symlink_to(elsewhere)
    affected = CASES if name == "outputs" else ["c2"]
    assert len(missing_outputs(TASK, CASES, workspace / "outputs")) == len(affected)
    manifest, _ = gather(workspace)
    assert codes(manifest) == {f"{case}/report.txt": "link" for case in affected}


def test_file_in_place_of_a_case_folder(workspace: Path) -> None:
    replace_c2(workspace)
    (workspace / "outputs" / "c2").rmdir()
    (workspace / "outputs" / "c2").write_text("I am a file")
    manifest, _ = gather(workspace)
    assert codes(manifest) == {"c2/report.txt": "not_a_folder"}


def test_locked_files_and_folders_of_our_own_are_repaired(request: pytest.FixtureRequest) -> None:
    place = Path(tempfile.mkdtemp())  # not pytest's own: only its owner may enter that
    request.addfinalizer(lambda: shutil.rmtree(place))
    workspace = build(place)
    (workspace / "outputs" / "c1" / "report.txt").chmod(0)
    (workspace / "outputs" / "c2").chmod(0)
    owner = 12345 if os.geteuid() == 0 else os.geteuid()
    for path in [place, workspace, *workspace.rglob("*")]:
        os.chown(path, owner, -1)
    workspace.chmod(0)
    assert in_child_as(owner, place, lambda: len(gather(Path("workspace"))[0].problems)) == 0


def in_child_as(user: int, folder: Path, count: Callable[[], int]) -> int:
    """Run as ``user`` from within ``folder``, because root reads everything whatever its mode."""
    child = os.fork()
    if child == 0:
        try:
            os.chdir(folder)
            os.setuid(user)
            ctypes.CDLL(None).prctl(
                PR_SET_DUMPABLE, 1
            )  # a change of user without exec hides /proc/self otherwise
            os._exit(count())
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_caps_on_total_size_hold_in_case_order(workspace: Path) -> None:
    manifest, _ = gather(workspace, CollectLimits(total_bytes=30))
    assert codes(manifest) == {"c3/report.txt": "total_too_large"}


def test_odd_names_survive_in_the_manifest(workspace: Path) -> None:
    outputs = os.fsencode(workspace / "outputs")
    for name in (b"new\nline", b"\xff\xfe", "\u202eright".encode(), b'"quote', b"x" * 255):
        Path(os.fsdecode(outputs + b"/" + name)).write_text("x")
    manifest, destination = gather(workspace)
    assert manifest.others_total == 5
    text = (destination / "manifest.json").read_text(encoding="ascii")
    assert set(json.loads(text)["others"]) >= {"new\nline", "\\xff\\xfe", '"quote'}
    assert load_submission_manifest(destination) == manifest


def test_a_hundred_thousand_files_are_only_counted_so_far(workspace: Path) -> None:
    crowd = os.open(workspace / "outputs", os.O_DIRECTORY)
    for number in range(100_000):
        os.mknod(f"f{number}", dir_fd=crowd)
    os.close(crowd)
    started = time.monotonic()
    manifest, _ = gather(workspace)
    assert time.monotonic() - started < 3
    assert len(manifest.files) == 3
    assert len(manifest.others) == CollectLimits().listed
    assert not manifest.others_complete


def test_plan_may_be_hostile_too(workspace: Path) -> None:
    os.mkfifo(workspace / "plan.md")
    (workspace / "plan.png").symlink_to("/etc/hostname")
    manifest, _ = gather(workspace)
    assert codes(manifest) == {"plan.md": "not_regular", "plan.png": "link"}
    assert manifest.process == ()


def test_a_collected_folder_is_never_overwritten(workspace: Path) -> None:
    gather(workspace)
    with pytest.raises(FileExistsError, match="already holds"):
        gather(workspace)


def test_leftovers_of_a_killed_collection_vanish(workspace: Path) -> None:
    partial = workspace.parent / "submission.part"
    partial.mkdir()
    (partial / "stale").write_text("stale")
    _, destination = gather(workspace)
    assert not partial.exists()
    assert not (destination / "stale").exists()


def test_a_copy_is_readable_by_the_evaluators_user(workspace: Path) -> None:
    (workspace / "outputs" / "c1" / "report.txt").chmod(0o600)
    previous = os.umask(0o077)
    try:
        _, destination = gather(workspace)
    finally:
        os.umask(previous)
    assert (destination / "c1" / "report.txt").stat().st_mode & 0o777 == 0o644
    assert (destination / "c1").stat().st_mode & 0o777 == 0o755
