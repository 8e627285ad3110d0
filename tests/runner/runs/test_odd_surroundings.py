"""Streams that are closed, full or gone, names that are no text, folders that cannot be written."""

from __future__ import annotations

import os
import subprocess

import pytest

from evaluator.trace import read_trace
from hf_datasets.records import load_record

REDIRECTIONS = ["2>&-", "2>/dev/full", "2> >(true)", "<&- >&- 2>&-"]


def shell(arguments, redirections, **more):
    return subprocess.run(
        ["bash", "-c", f'"$@" {redirections}', "bash", *arguments], capture_output=True, timeout=120, **more
    )


@pytest.mark.parametrize("redirections", REDIRECTIONS)
def test_a_log_that_cannot_be_written_costs_no_run(command, sandbox, redirections):
    done = shell(command.arguments("run", **command.cell(sandbox=sandbox)), redirections)
    assert done.returncode == 0, done.stderr
    assert load_record(command.folder() / "record.json").end_reason == "submitted"
    assert [event.type for event in read_trace(command.folder() / "trace.jsonl")][-1] == "end"


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_full_disk_behind_stdout_is_said_on_stderr(command, more):
    done = shell([*command.arguments("list", "tasks"), *more], ">/dev/full")
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith(b"error: ")
    assert b"Traceback" not in done.stderr


def test_a_runs_folder_with_a_name_that_is_no_text(command):
    runs = command.runs.parent / os.fsdecode(b"r\xff\x1b[31m")
    answer = command.run("--json", sandbox="bubblewrap", runs_dir=runs)
    assert answer.code == 0, answer.err
    folder = runs / "vqa-rad-task" / "lite" / "noop" / "r00"
    assert os.fsencode(answer.json["folder"]).endswith(b"r00")
    for verb in ("show", "explain"):
        shown = command(verb, folder)
        assert shown.code == 0, shown.err
    listed = command("list", "runs", runs_dir=runs)
    assert "\\udcff" in listed.out
    assert "\x1b" not in listed.out


def test_no_home_and_an_ascii_locale(command, sandbox):
    bare = {"PATH": os.environ["PATH"], "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    bare |= {name: os.environ[name] for name in ("DOCKER_HOST",) if name in os.environ}
    done = subprocess.run(
        command.arguments("run", **command.cell(sandbox=sandbox)), capture_output=True, env=bare, timeout=120
    )
    assert done.returncode == 0, done.stderr
