from __future__ import annotations

import json
import subprocess
import sys

from typer.testing import CliRunner

from hf_datasets.cli import app
from hf_datasets.families import FAMILIES

runner = CliRunner()


def test_phantom_then_stage_then_nothing_to_do(tmp_path):
    made = runner.invoke(app, ["phantom", "bccd-det-task", "--out", str(tmp_path / "raw")])
    assert made.exit_code == 0
    assert "bccd-det-task: phantom with seed 0" in made.output
    arguments = [
        "stage",
        "bccd-det-task",
        "--source",
        str(tmp_path / "raw"),
        "--out",
        str(tmp_path / "data"),
        "--release",
        "phantom",
    ]
    for _ in range(2):
        staged = runner.invoke(app, [*arguments, "--json"])
        assert staged.exit_code == 0
        (row,) = json.loads(staged.output)
        assert (row["task"], row["cases"], row["redistribution"]) == ("bccd-det-task", 8, "allowed")
    assert (tmp_path / "data/phantom/bccd-det-task/manifest.json").is_file()


def test_all_takes_each_task_from_its_folder(raw_phantoms, tmp_path):
    arguments = [
        "stage",
        "--all",
        "--source",
        str(raw_phantoms),
        "--out",
        str(tmp_path),
        "--release",
        "phantom",
        "--dry-run",
        "--json",
    ]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0
    rows = {row["task"]: row for row in json.loads(result.output)}
    cases = {task: row["cases"] for task, row in rows.items()}
    assert set(cases) == set(FAMILIES)
    assert cases["kidney-seg-task"] == 6
    assert cases["vqa-rad-task"] == 31
    assert min(cases.values()) > 0
    assert list(tmp_path.iterdir()) == []


def test_errors_are_one_line_with_their_exit_code(tmp_path):
    for arguments, code, words in (
        (
            ["stage", "bccd-det-task", "--source", str(tmp_path / "none"), "--out", str(tmp_path)],
            3,
            "expected a folder with raw BCCD",
        ),
        (["phantom", "bccd-task", "--out", str(tmp_path / "raw")], 2, "did you mean bccd-det-task"),
        (["phantom", "--out", str(tmp_path / "raw")], 2, "expected a task id or --all"),
        (
            ["stage", "--all", "--source", "x", "--out", "y", "--release", "best"],
            2,
            "expected phantom, lite or full",
        ),
    ):
        command = [sys.executable, "-m", "hf_datasets", *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={"COLUMNS": "200", "PATH": ""}
        )
        assert done.returncode == code, done.stderr
        assert words in done.stderr
        assert "Traceback" not in done.stderr
