"""A new task's folder loads at once, and validation names what only its author can write."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from runner import task_checks as checks
from runner.errors import UsageProblem
from runner.scaffold import new_task
from runner.task_checks import Subject
from tasks.registry import all_tasks, load_folder
from tasks.schema import Track

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("track", Track)
def test_the_folder_loads_and_is_sound_but_for_what_is_marked(track: Track, tmp_path: Path) -> None:
    folder = new_task("spine-new-task", track, tmp_path)
    task = load_folder(folder)
    assert (task.id, task.track) == ("spine-new-task", track)
    subject = Subject(task, folder, tmp_path)
    assert not list(checks.requirements(subject))
    assert not list(checks.terms(subject))
    marked = list(checks.texts(subject))
    assert {problem.split(",")[0] for problem in marked} == {"task.yaml", "lite.md", "standard.md"}


@pytest.mark.parametrize("track", Track)
def test_its_form_is_that_of_the_track(track: Track, tmp_path: Path) -> None:
    task = load_folder(new_task("spine-new-task", track, tmp_path))
    others = [other for other in all_tasks() if other.track is track]
    assert task.output.kind in {other.output.kind for other in others}
    assert task.metric.headline in {other.metric.headline for other in others}
    assert task.trivial.kind in {other.trivial.kind for other in others} | {"copied_input"}
    assert task.unit in {other.unit for other in others} | {"slice", "volume"}


@pytest.mark.parametrize("name", ["Spine", "spine_task", "-spine", "spine--task", ""])
def test_an_id_of_another_form_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="expected an id of small letters"):
        new_task(name, Track.VQA, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    folder = new_task("spine-new-task", Track.VQA, tmp_path)
    (folder / "lite.md").write_text("mine")
    with pytest.raises(UsageProblem, match="is taken"):
        new_task("spine-new-task", Track.VQA, tmp_path)
    assert (folder / "lite.md").read_text() == "mine"
    with pytest.raises(UsageProblem, match="is taken"):
        new_task("kidney-seg-task", Track.VQA)


def test_from_the_command_line_to_the_list_of_what_is_left(tmp_path: Path) -> None:
    for room in ("tasks", "evaluator", "hf_datasets", "runner"):
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "runner", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    made = run("new-task", "spine-new-task", "--track", "detection")
    assert made.returncode == 0
    assert "replace every TODO" in made.stdout
    assert (tmp_path / "tasks/detection/spine-new-task/task.yaml").is_file()
    found = run("validate", "spine-new-task", "--no-snippets")
    assert found.returncode == 2
    assert "spine-new-task: texts: lite.md, line 3: TODO is left" in found.stdout
    assert "spine-new-task: briefs: the lite brief does not render: " in found.stdout
    assert "spine-new-task: phantom: no data family for task 'spine-new-task'" in found.stdout
    assert "schema:" not in found.stdout
    again = run("new-task", "spine-new-task", "--track", "detection")
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
