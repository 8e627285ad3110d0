"""The registry reads the five task folders and refuses broken ones in one line that says what to change."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.registry import (
    TaskError,
    all_tasks,
    folder_digest,
    load_folder,
    load_task,
    task_digest,
    task_folder,
)
from tasks.schema import Task, Track

TASKS = all_tasks()
KIDNEY = "segmentation/kidney-seg-task"


@pytest.fixture
def kidney(tmp_path: Path) -> Path:
    """A copy of a real task folder to break."""
    return Path(shutil.copytree(task_folder("kidney-seg-task"), tmp_path / KIDNEY))


def edit(folder: Path, old: str, new: str) -> None:
    path = folder / "task.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def refusal(folder: Path) -> str:
    with pytest.raises(TaskError) as caught:
        load_folder(folder)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_there_is_one_task_for_each_of_the_five_paper_tracks() -> None:
    assert {task.track for task in TASKS if task.in_paper} == set(Track) - {
        Track.CLASSIFICATION,
        Track.SYNTHESIS,
    }
    assert [task.id for task in TASKS] == sorted(task.id for task in TASKS)


def test_a_task_is_read_once() -> None:
    assert load_task("bccd-det-task") is load_task("bccd-det-task")


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("kidney-seg", "kidney-seg-task"), ("vqarad-task", "vqa-rad-task"), ("bccd_det_task", "bccd-det-task")],
)
def test_an_unknown_id_names_the_nearest(asked: str, meant: str) -> None:
    with pytest.raises(TaskError, match=f"unknown task '{asked}'; did you mean '{meant}'\\?"):
        load_task(asked)


def test_an_id_like_no_other_lists_what_exists() -> None:
    with pytest.raises(TaskError) as caught:
        load_task("zzz")
    assert "did you mean" not in str(caught.value)
    assert all(task.id in str(caught.value) for task in TASKS)


def test_a_copied_folder_loads(kidney: Path) -> None:
    assert load_folder(kidney) == load_task("kidney-seg-task")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("modality:", "modalty:", "unknown key 'modalty'; did you mean 'modality'?"),
        ("  license:", "  licence:", "unknown key 'source.licence'; did you mean 'license'?"),
        ("grid_of:", "gridof:", "unknown key 'output.mask.files.0.gridof'; did you mean 'grid_of'?"),
        ("wall_seconds:", "wall_secs:", "unknown key 'limits.wall_secs'; did you mean 'wall_seconds'?"),
        ("{trivial: ", "{triviall: ", "unknown key 'baselines.phantom.triviall'; did you mean"),
        ("repeats: 20", "repeats: 0", "repeats: Input should be greater than 0, found 0"),
        ("redistribution: derived", "redistribution: maybe", "found 'maybe'"),
        ("in_paper: true\n", "", "in_paper: Field required"),
        ("repeats: 20", "repeats: 20\nrepeats: 30", "key 'repeats' stands twice"),
        ("ids: [1]", "ids: [7]", "target 'organ' uses ids [7], which 'organ.nii.gz' does not list"),
        ("grid_of: ct.nii.gz", "grid_of: mr.nii.gz", "is 'mr.nii.gz', which is no input file"),
        ("kind: empty_mask", "kind: no_box", "trivial.kind 'no_box' does not fit output.kind 'mask'"),
        ("references: [organ", "references: [../organ", "must be relative and stay inside the case folder"),
        ("  limits.turns: ours", "  limits.turn: ours", "basis names 'limits.turn'"),
        ("id: kidney-seg-task", "id: liver-seg-task", "id is 'liver-seg-task' but its folder is named"),
        ("track: segmentation", "track: detection", "track is 'detection' but its folder lies in"),
        ("title:", "title: [", "is not YAML"),
        ("repeats: 20", "repeats: !!python/object/apply:os.getcwd []", "is not YAML"),
    ],
)
def test_a_broken_file_is_refused_by_name(kidney: Path, old: str, new: str, message: str) -> None:
    edit(kidney, old, new)
    assert message in refusal(kidney)


def test_a_duplicate_key_names_its_line(kidney: Path) -> None:
    lines = (kidney / "task.yaml").read_text().splitlines()
    (kidney / "task.yaml").write_text("\n".join([*lines, "unit: case"]))
    assert f"line {len(lines) + 1}: key 'unit' stands twice" in refusal(kidney)


@pytest.mark.parametrize("content", ["", "- a list\n", "just words\n"])
def test_a_file_that_is_no_mapping_is_refused(kidney: Path, content: str) -> None:
    (kidney / "task.yaml").write_text(content)
    assert "task.yaml" in refusal(kidney)


@pytest.mark.parametrize("name", ["task.yaml", "lite.md", "standard.md", "requirements.txt"])
def test_a_missing_file_is_named(kidney: Path, name: str) -> None:
    (kidney / name).unlink()
    assert f"lacks {name}" in refusal(kidney)


def test_the_digest_sees_names_and_bytes_and_nothing_else(kidney: Path) -> None:
    before = folder_digest(kidney)
    assert before == task_digest("kidney-seg-task")
    (kidney / ".swap").write_text("an editor was here")
    (kidney / "lite.md").touch()
    assert folder_digest(kidney) == before
    (kidney / "lite.md").rename(kidney / "lite2.md")
    renamed = folder_digest(kidney)
    (kidney / "lite2.md").write_bytes((kidney / "lite2.md").read_bytes() + b" ")
    assert len({before, renamed, folder_digest(kidney)}) == 3


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_requirements_are_pinned(task: Task) -> None:
    lines = (task_folder(task.id) / "requirements.txt").read_text().splitlines()
    wanted = [line for line in lines if line and not line.startswith("#")]
    assert wanted
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][0-9a-z.]*", line) for line in wanted)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_what_no_source_states_is_marked(task: Task) -> None:
    assert set(task.basis.values()) == {"ours"}
    assert {"limits.turns", "limits.tokens", "limits.memory_mb"} <= set(task.basis)


def test_importing_the_package_pulls_in_nothing_heavy() -> None:
    script = (
        "import sys, tasks, tasks.scoring; print({'pydantic', 'jinja2', 'yaml', 'numpy'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "set()\n"


def test_the_package_names_its_exports() -> None:
    import tasks

    assert all(getattr(tasks, name) for name in tasks.__all__)
    with pytest.raises(AttributeError, match="no attribute 'lod_task'"):
        _ = tasks.lod_task


def test_the_words_about_a_broken_form_are_one_printable_line():
    """Names of unknown fields come from whoever wrote the file."""
    from pydantic import ValidationError

    from tasks.manifest import Manifest
    from tasks.schema import first_problem

    for name in ("a\nb", "\x1b[2J\x07", "\u202e", "x" * 5000):
        with pytest.raises(ValidationError) as refused:
            Manifest.model_validate({name: 1})
        last = refused.value.errors()[-1]
        assert last["loc"] == (name,)
        only = ValidationError.from_exception_data(
            "Manifest", [{"type": "extra_forbidden", "loc": (name,), "input": 1}]
        )
        said = first_problem(only)
        assert said.isprintable()
        assert len(said) < 500
