"""All tasks as one table, and the choice among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from space.markup import chip, el, note, percent, table
from space.site import Site
from tasks.registry import all_tasks
from tasks.schema import Baseline, Redistribution, Release, Task, Track

LEAVES: Mapping[Redistribution, str] = {
    Redistribution.ALLOWED: "data, outputs, traces",
    Redistribution.DERIVED: "outputs and scores",
    Redistribution.NONE: "scores alone",
}
"""What may leave the machine on which a run was made."""


@dataclass(frozen=True)
class Wanted:
    """Which tasks are listed; an empty choice leaves everything in."""

    words: str = ""
    tracks: Sequence[str] = ()
    leaves: Sequence[str] = ()
    paper: bool = False

    def holds(self, task: Task) -> bool:
        text = (
            f"{task.id} {task.title} {task.modality} {task.source.dataset} {task.paper_name or ''}".casefold()
        )
        return (
            all(word in text for word in self.words.casefold().split())
            and (not self.tracks or task.track.value in self.tracks)
            and (not self.leaves or task.source.redistribution.value in self.leaves)
            and (task.in_paper or not self.paper)
        )


def catalogue(wanted: Wanted, counts: Mapping[str, int]) -> Markup:
    """The tasks that fit, by track; ``counts``: runs of a task that the results hold."""
    found = [task for track in Track for task in all_tasks() if task.track is track and wanted.holds(task)]
    if not found:
        return note("No task fits. Take away a filter or a word of the search.", "warning")
    heads = ("task", "track", "modality", "data set", "licence", "may leave", "cases", "headline metric",
             "doing nothing", "baseline", "runs")  # fmt: skip
    rows = [_row(task, counts.get(task.id, 0)) for task in found]
    return table(heads, rows, caption=f"{len(found)} of {len(all_tasks())} tasks", class_="amb-wide")


def _row(task: Task, runs: int) -> list[object]:
    source, measured = task.source, task.baselines.get(Release.PHANTOM, Baseline())
    name = el("a", task.title, href=Site.link("tasks", task=task.id))
    paper = chip("paper", title="One of the published tasks") if task.in_paper else None
    return [
        el("div", name, el("br"), el("code", task.id, class_="amb-hint"), " ", paper, class_="amb-task-name"),
        task.track.value,
        task.modality,
        source.dataset,
        source.license,
        LEAVES[source.redistribution],
        "–" if task.cases is None else task.cases,
        el("code", task.metric.headline),
        percent(measured.trivial),
        percent(measured.strong),
        el("a", runs, href=Site.link("leaderboard", task=task.id)) if runs else "–",
    ]
