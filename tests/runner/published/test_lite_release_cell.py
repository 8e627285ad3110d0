"""The runner fetches a Lite release that it lacks, at a pinned commit, and the record names that commit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hf_datasets.records import load_record
from hf_datasets.releases import build_release
from tasks.names import Release

TASK = "grazpedwri-det-task"


def runner(hub, home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "runner", *arguments],
        env=hub.environment(home)
        | {"HOME": str(Path.home())}
        | environment,  # the sandbox's packages lie there
        cwd=home,
        capture_output=True,
        text=True,
        timeout=300,
    )


RUN = ("run", "--agent", "noop", "--release", "lite", "--tier", "lite", "--sandbox", "bubblewrap", "--json")


@pytest.mark.bubblewrap
@pytest.mark.slow
def test_a_cell_of_a_lite_release_runs_on_what_the_hub_had_at_a_commit(hub, lite_data, tmp_path):
    build_release(Release.LITE, lite_data, tmp_path / "lite", tmp_path / "lite-references")
    for repo in ("lite", "lite-references"):
        parts = sorted(path for path in (tmp_path / repo).rglob("*") if path.is_file())
        hub.put(
            f"bench/{repo}",
            {path.relative_to(tmp_path / repo).as_posix(): path.read_bytes() for path in parts},
        )
    commit = hub.history("bench/lite")[0].oid
    hub.put("bench/lite", {"README.md": b"a later commit"})

    first = runner(hub, tmp_path, *RUN, "--task", TASK, AUTOMEDBENCH_LITE_RELEASE=f"bench/lite@{commit}")
    assert first.returncode == 0, first.stdout + first.stderr
    record = load_record(_record(tmp_path, TASK))
    assert (record.release, record.data_revision) == ("lite", commit)
    assert json.loads((_record(tmp_path, TASK).parent / "cell.json").read_text())["data_revision"] == commit
    assert record.n_cases > 0

    second = runner(hub, tmp_path, *RUN, "--task", "medxpertqa-mm-task")  # named by the data folder now
    assert second.returncode == 0, second.stdout + second.stderr
    assert load_record(_record(tmp_path, "medxpertqa-mm-task")).data_revision == commit

    third = runner(hub, tmp_path, *RUN, "--task", "iu-xray-report-task")
    assert third.returncode == 3
    assert "may not be passed on" in json.loads(third.stdout)["error"]
    assert "python -m hf_datasets stage iu-xray-report-task" in json.loads(third.stdout)["error"]


def test_without_a_named_release_the_error_says_how_to_name_one(hub, tmp_path):
    done = runner(hub, tmp_path, *RUN, "--task", TASK)
    assert done.returncode == 3
    error = json.loads(done.stdout)["error"]
    assert error.startswith("no staged data: expected data/lite/grazpedwri-det-task")
    assert "download-release lite" in error
    assert "AUTOMEDBENCH_LITE_RELEASE" in error


def _record(root: Path, task: str) -> Path:
    return root / "runs" / task / "lite" / "noop" / "r00" / "record.json"
