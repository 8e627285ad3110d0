"""What a comparison is about: a task, up to three of its runs, one case, and what is to be seen of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from evaluator.report import CaseResult
from space.markup import el, join, note, number, percent, section
from space.rundetail.parts import report_of, task_of, why_missing
from space.site import Site
from space.snapshot import RunDetail
from space.staged import staged_for
from space.viewer.case import CaseView, Handed, Side, load_case
from space.viewer.draw import draw
from space.viewer.look import Look
from space.viewer.panels import columns, figure
from tasks.schema import Task

MAX_RUNS = 3
MAX_FACTS = 3


@dataclass(frozen=True)
class Scene:
    """``cases``: ids in the order of the manifest, and with each what the runs scored."""

    task: Task
    runs: tuple[RunDetail, ...]
    cases: tuple[tuple[str, str], ...]
    case_id: str | None
    view: CaseView | None
    note: str = ""

    @property
    def kind(self) -> str:
        """What there are controls for: ``mask``, ``image``, ``boxes``, ``words``, or nothing drawn at all."""
        if self.view is None or not self.view.drawable:
            return "nothing"
        kind = self.task.output.kind
        return kind if kind in ("mask", "image", "boxes") else "words"


def set_scene(site: Site, task: Task, runs: Sequence[RunDetail], case_id: str | None) -> Scene:
    """Read the case; one that none of the runs has becomes their first."""
    runs = tuple(runs)[:MAX_RUNS]
    found = _cases(runs)
    names = [name for name, _ in found]
    if not names:
        return Scene(task, runs, (), None, None)
    chosen = case_id if case_id in names else names[0]
    staged, why = staged_for(site.staged, task, runs[0].record)
    same = len({run.record.manifest_sha256 for run in runs}) == 1
    if not same:
        staged, why = (
            None,
            "These runs were made on different data, so there is no input that belongs to all of them.",
        )
    titles = run_titles(runs)
    handed = [_handed(run, title, chosen) for run, title in zip(runs, titles, strict=True)]
    return Scene(task, runs, found, chosen, load_case(task, chosen, handed, staged), why)


def run_titles(runs: Sequence[RunDetail]) -> list[str]:
    """Short names that tell the runs apart."""
    return [f"{run.record.agent} {run.record.tier.value} r{run.record.repeat:02d}" for run in runs]


def _cases(runs: Sequence[RunDetail]) -> tuple[tuple[str, str], ...]:
    scores: dict[str, list[str]] = {}
    for place, run in enumerate(runs):
        report = report_of(run).value
        for case in report.cases if report else ():
            listed = scores.setdefault(case.case_id, ["–"] * len(runs))
            listed[place] = percent(case.score, 0) if case.status == "scored" else case.status
    if not scores:
        scores = {name: [] for run in runs for name in run.previews}
    return tuple(
        (name, f"{name}  ({' / '.join(values)})" if values else name) for name, values in scores.items()
    )


def _handed(run: RunDetail, title: str, case_id: str) -> Handed:
    result = _result(run, case_id)
    folder = run.folder / "submission" if run.folder else None
    fault = f"{result.error.code}: {result.error.message}" if result and result.error else ""
    facts = _facts(run, result) if result else ()
    if folder is None or folder.is_symlink() or not folder.is_dir():
        return Handed(title, None, facts, fault or why_missing(run, "copy of what was handed in"))
    return Handed(title, folder, facts, fault)


def _result(run: RunDetail, case_id: str) -> CaseResult | None:
    report = report_of(run).value
    return next((case for case in report.cases if case.case_id == case_id), None) if report else None


def _facts(run: RunDetail, result: CaseResult) -> list[tuple[str, str]]:
    """The case's score and its first metrics, those that the task names before the others."""
    task = task_of(run.record)
    named = (task.metric.headline, *task.metric.secondary) if task else ()

    def rank(name: str) -> tuple[int, str]:
        return next((place for place, known in enumerate(named) if name.startswith(known)), len(named)), name

    names = sorted((name for name, value in result.metrics.items() if value is not None), key=rank)
    return [
        ("score", percent(result.score)),
        *((name, number(result.metrics[name], 3)) for name in names[:MAX_FACTS]),
    ]


def show_scene(site: Site, scene: Scene, look: Look) -> Markup:
    """The case as it is looked at; below it, what the runs drew themselves."""
    if not scene.runs:
        return note("Choose a task and up to three of its runs.")
    if scene.view is None:
        return note(_no_cases(scene), "warning")
    remark = note(scene.note) if scene.note else None
    pictures = _previews(site, scene)
    drawn = draw(scene.view, look)
    if scene.kind == "nothing" and pictures is not None:
        return join([remark, pictures, section("Why they are not drawn live", drawn, open_=False)])
    if scene.view.given is None and pictures is not None:
        alone = section("What was handed in, without the input", drawn, open_=False)
        return join([remark, pictures, _links(scene), alone])
    folded = section("Pictures drawn when the runs were scored", pictures, open_=False) if pictures else None
    return join([remark, drawn, _links(scene), folded])


def _no_cases(scene: Scene) -> str:
    said = {report_of(run).missing for run in scene.runs} - {""}
    return " ".join(sorted(said)) or "The reports of these runs name no case."


def _previews(site: Site, scene: Scene) -> Markup | None:
    titles = run_titles(scene.runs)
    figures = [
        figure(
            Side(title, facts=_facts(run, result) if (result := _result(run, scene.case_id or "")) else ()),
            el(
                "img", src=site.file_url(run.run_id, f"previews/{scene.case_id}.webp"), loading="lazy",
                alt=f"Case {scene.case_id} of {title}, drawn when the run was scored", class_="amb-preview",
            ),
        )
        for run, title in zip(scene.runs, titles, strict=True)
        if scene.case_id in run.previews
    ]  # fmt: skip
    assert scene.view is not None, "pictures belong to a case"
    return columns(figures, CaseView(scene.task, scene.case_id or "", None, ())) if figures else None


def _links(scene: Scene) -> Markup:
    links = [
        el("a", title, href=Site.link("run", run=run.run_id, section="Cases"))
        for run, title in zip(scene.runs, run_titles(scene.runs), strict=True)
    ]
    return el("p", "The runs: ", join(links, " · "), class_="amb-hint")
