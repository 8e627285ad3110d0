"""One submission, one report, to the byte: whatever the time zone, locale, hash seed, or number of cores."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from evaluator.reference_submissions import write_trivial

SCRIPT = """
import os, sys
from pathlib import Path
root, cores, jobs = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) or None
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
from evaluator.report import dump_report
from evaluator.score import score
from tasks.manifest import load_manifest
from tasks.schema import Task
task = Task.model_validate_json((root / "task.json").read_bytes())
report = score(task, root / "submission", root / "private", root / "public", load_manifest(root), jobs)
sys.stdout.buffer.write(dump_report(report).encode())
"""
SURROUNDINGS = [
    (1, 0, {"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C"}),
    (2, 0, {"PYTHONHASHSEED": "1", "TZ": "Asia/Kathmandu", "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "2"}),
    (2, 5, {"PYTHONHASHSEED": "99", "LANG": "tr_TR.UTF-8", "OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"}),
]
TRACKS = [
    *("segmentation", "labelmap", "enhancement", "synthesis"),
    *("vqa", "report", "detection", "classification"),
]


@pytest.mark.parametrize("track", TRACKS)
def test_the_same_bytes_whatever_the_surroundings(stage, track: str, tmp_path) -> None:
    staged = stage(track)
    write_trivial(staged.task, staged.manifest, staged.public, tmp_path / "trivial")
    shutil.copytree(tmp_path / "trivial" / "c1", staged.submission / "c1", dirs_exist_ok=True)
    staged.output("c2").write_bytes(b"\x1f\x8bgarbage")
    (staged.root / "task.json").write_text(staged.task.model_dump_json())
    reports = set()
    for cores, jobs, env in SURROUNDINGS:
        command = [sys.executable, "-c", SCRIPT, str(staged.root), str(cores), str(jobs)]
        done = subprocess.run(command, capture_output=True, check=True, env=os.environ | env)
        reports.add(done.stdout)
    assert len(reports) == 1
    assert b'"invalid"' in reports.pop()
