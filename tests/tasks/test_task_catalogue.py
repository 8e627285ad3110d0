"""All tasks are there, the published ones are exactly those of the paper, and the page says what the folders say."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tasks.page import tasks_page
from tasks.registry import all_tasks, load_task, task_ids
from tasks.schema import Tier, Track

ROOT = Path(__file__).parents[2]
PAPER = {
    "kidney-seg-task": "segmentation", "pancreas-seg-task": "segmentation", "pancreas-oar-seg-task": "segmentation",
    "feta-seg-task": "segmentation", "aeropath-seg-task": "segmentation", "tsg-multiorgan-seg-task": "segmentation",
    "panther-t1-seg-task": "segmentation", "panther-t2-seg-task": "segmentation",
    "ldct-denoising-task": "enhancement", "mri-sr-task": "enhancement",
    "vqa-rad-task": "vqa", "pathvqa-task": "vqa", "slake-task": "vqa", "medframeqa-task": "vqa",
    "medxpertqa-mm-task": "vqa",
    "iu-xray-report-task": "report", "mimic-cxr-report-task": "report", "chexpert-plus-cxr-task": "report",
    "pathology-caption-100-task": "report", "pathology-caption-500-task": "report",
    "bccd-det-task": "detection", "vindr-cxr-det-task": "detection", "dentex-det-task": "detection",
    "grazpedwri-det-task": "detection",
}  # fmt: skip
TRACKS = {
    Track.SEGMENTATION: 14, Track.ENHANCEMENT: 7, Track.VQA: 9, Track.REPORT: 5, Track.DETECTION: 4,
    Track.CLASSIFICATION: 5, Track.SYNTHESIS: 4,
}  # fmt: skip
TWENTY = {
    "kidney-seg-task",
    "pancreas-seg-task",
    "pancreas-oar-seg-task",
    "feta-seg-task",
    "aeropath-seg-task",
}


def test_there_are_48_tasks() -> None:
    tasks = all_tasks()
    assert len(tasks) == 48
    assert Counter(task.track for task in tasks) == TRACKS
    assert task_ids() == [task.id for task in tasks]


def test_the_24_published_tasks_are_those_of_the_paper() -> None:
    published = {task.id: task.track.value for task in all_tasks() if task.in_paper}
    assert len(published) == 24
    assert published == PAPER
    assert all(load_task(task_id).paper_name for task_id in PAPER)
    assert {task.id for task in all_tasks() if task.repeats == 20} == TWENTY


def test_every_tier_names_its_models() -> None:
    for task in all_tasks():
        assert len(task.tiers.models(Tier.LITE)) == 1
        assert 2 <= len(task.tiers.models(Tier.STANDARD)) <= 6
        assert task.tiers.models(Tier.PRO) == ()


def test_the_page_of_tasks_is_current() -> None:
    assert (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8") == tasks_page(), (
        "run python -m tasks.page > docs/tasks.md"
    )


def test_the_page_has_a_row_for_every_task() -> None:
    rows = [line for line in tasks_page().splitlines() if line.startswith("| `")]
    assert len(rows) == 48
    assert sum("` (paper) |" in row for row in rows) == 24
    assert len({row.count(" | ") for row in rows}) == 1
