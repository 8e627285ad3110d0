"""Staging is all or nothing, repeatable, and safe against interruption and company."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from hf_datasets import ensure_phantom
from hf_datasets.staging import StagingError, plan, stage
from tasks.manifest import load_manifest

TASK = "bccd-det-task"


def visible(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def test_same_source_is_left_alone_and_same_seed_gives_same_bytes(raw_phantoms, tmp_path, tree_digest):
    first = stage(TASK, raw_phantoms / TASK, tmp_path / "a", release="phantom", seed=3)
    inode = (tmp_path / "a/phantom" / TASK / "manifest.json").stat().st_ino
    assert stage(TASK, raw_phantoms / TASK, tmp_path / "a", release="phantom", seed=3) == first
    assert (tmp_path / "a/phantom" / TASK / "manifest.json").stat().st_ino == inode
    stage(TASK, raw_phantoms / TASK, tmp_path / "b", release="phantom", seed=3)
    assert tree_digest(tmp_path / "a/phantom" / TASK) == tree_digest(tmp_path / "b/phantom" / TASK)


def test_low_dose_noise_is_repeated_by_the_seed(raw_phantoms, tmp_path, tree_digest):
    task = "ldct-denoising-task"
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        stage(task, raw_phantoms / task, tmp_path / name, release="phantom", limit=2, seed=seed)
    assert tree_digest(tmp_path / "a") == tree_digest(tmp_path / "b")
    inputs = [set(tree_digest(tmp_path / name / "phantom" / task / "public").values()) for name in ("a", "c")]
    assert not inputs[0] & inputs[1]


def test_another_seed_or_source_replaces_the_staging(raw_copy, tmp_path):
    raw, target = raw_copy(TASK), tmp_path / "data/phantom" / TASK
    stage(TASK, raw, tmp_path / "data", release="phantom", seed=1)
    manifest = stage(TASK, raw, tmp_path / "data", release="phantom", seed=2)
    assert load_manifest(target) == manifest
    assert {path.name for path in (target / "public").iterdir()} == set(manifest.case_ids())
    name = manifest.cases[0].origin
    shutil.copy(
        next(path for path in (raw / "JPEGImages").iterdir() if path.stem != name),
        raw / "JPEGImages" / f"{name}.jpg",
    )
    again = stage(TASK, raw, tmp_path / "data", release="phantom", seed=2)
    assert again.cases[0].public != manifest.cases[0].public
    assert visible(tmp_path / "data/phantom") == [TASK]


def test_a_failed_staging_keeps_the_standing_one(raw_copy, tmp_path, tree_digest):
    raw, target = raw_copy(TASK), tmp_path / "data/phantom" / TASK
    manifest = stage(TASK, raw, tmp_path / "data", release="phantom")
    before = tree_digest(target)
    picture = raw / "JPEGImages" / f"{manifest.cases[-1].origin}.jpg"
    picture.write_bytes(picture.read_bytes()[:2000])
    with pytest.raises(StagingError, match="not a complete picture"):
        stage(TASK, raw, tmp_path / "data", release="phantom")
    assert tree_digest(target) == before
    assert visible(tmp_path / "data/phantom") == [TASK]


def test_an_incomplete_staging_is_made_again(raw_phantoms, tmp_path, tree_digest):
    target = tmp_path / "data/phantom" / TASK
    manifest = stage(TASK, raw_phantoms / TASK, tmp_path / "data", release="phantom")
    before = tree_digest(target)
    shutil.rmtree(target / "private" / manifest.cases[0].id)
    stage(TASK, raw_phantoms / TASK, tmp_path / "data", release="phantom")
    assert tree_digest(target) == before


def test_foreign_files_in_the_target_are_not_replaced(raw_phantoms, tmp_path):
    target = tmp_path / "data/phantom" / TASK
    target.mkdir(parents=True)
    (target / "notes.txt").write_text("mine")
    with pytest.raises(StagingError, match="found other files"):
        stage(TASK, raw_phantoms / TASK, tmp_path / "data", release="phantom")
    assert (target / "notes.txt").read_text() == "mine"


def test_phantoms_and_upstream_data_are_never_mistaken(raw_copy, tmp_path):
    raw = raw_copy(TASK)
    for release in ("lite", "full"):
        with pytest.raises(StagingError, match="generated phantom"):
            stage(TASK, raw, tmp_path / "data", release=release)
    with pytest.raises(StagingError, match="that of bccd-det-task"):
        stage("iu-xray-report-task", raw, tmp_path / "data", release="phantom")
    (raw / "phantom.json").unlink()
    with pytest.raises(StagingError, match="expected a generated phantom"):
        stage(TASK, raw, tmp_path / "data", release="phantom")
    manifest = stage(TASK, raw, tmp_path / "data", release="full", limit=3)
    assert (manifest.license, manifest.release, len(manifest.cases)) == ("MIT", "full", 3)
    assert manifest.source.startswith("BCCD")
    assert not any(case.real for case in manifest.cases)


def test_a_limit_draws_the_same_cases_whatever_else_is_there(raw_phantoms, tmp_path):
    whole = plan(TASK, raw_phantoms / TASK, tmp_path, release="phantom")
    few = plan(TASK, raw_phantoms / TASK, tmp_path, release="phantom", limit=3)
    assert len(few.cases) == 3
    assert set(few.cases) < set(whole.cases)
    assert (whole.available, few.available) == (8, 8)
    with pytest.raises(StagingError, match="at least 1"):
        plan(TASK, raw_phantoms / TASK, tmp_path, release="phantom", limit=0)


def test_a_strict_umask_does_not_lock_the_agent_out(raw_phantoms, tmp_path):
    before = os.umask(0o077)
    try:
        stage(TASK, raw_phantoms / TASK, tmp_path / "data", release="phantom", limit=1)
    finally:
        os.umask(before)
    for path in (
        tmp_path / "data",
        tmp_path / "data/phantom",
        *(tmp_path / "data/phantom" / TASK).rglob("*"),
    ):
        assert path.stat().st_mode & 0o044 == 0o044, path
        assert not path.is_dir() or path.stat().st_mode & 0o011 == 0o011, path


ENSURE = (
    "import sys; from pathlib import Path; from hf_datasets import ensure_phantom; "
    "folder = ensure_phantom(sys.argv[1], Path(sys.argv[2])); print((folder / 'manifest.json').stat().st_ino)"
)


def test_ensure_phantom_by_several_processes_makes_it_once(tmp_path):
    starts = [
        subprocess.Popen(
            [sys.executable, "-c", ENSURE, TASK, str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    answers = [process.communicate(timeout=60) for process in starts]
    assert [process.returncode for process in starts] == [0] * 4, answers
    assert len({out for out, _ in answers}) == 1
    assert visible(tmp_path / "phantom") == [TASK]


def test_ensure_phantom_after_a_kill(tmp_path, tree_digest):
    task = "ldct-denoising-task"
    whole = ensure_phantom(task, tmp_path / "whole")
    for moment in (f".{task}.raw", f".{task}.partial"):
        process = subprocess.Popen([sys.executable, "-c", ENSURE, task, str(tmp_path / "cut")])
        deadline = time.monotonic() + 60
        while (
            time.monotonic() < deadline
            and process.poll() is None
            and not (tmp_path / "cut/phantom" / moment).exists()
        ):
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert process.returncode == -signal.SIGKILL, moment
        assert not (tmp_path / "cut/phantom" / task).exists()
    assert tree_digest(ensure_phantom(task, tmp_path / "cut")) == tree_digest(whole)
    assert visible(tmp_path / "cut/phantom") == [task]


def test_ensure_phantom_keeps_its_seed_apart(tmp_path):
    first = load_manifest(ensure_phantom(TASK, tmp_path, seed=0))
    second = load_manifest(ensure_phantom(TASK, tmp_path, seed=1))
    assert (first.seed, second.seed) == (0, 1)
    assert not set(first.case_ids()) & set(second.case_ids())
