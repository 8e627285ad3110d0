"""One row a case: how it counted, its metrics, and the way to the pictures."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from evaluator.metrics.registry import metric_info
from evaluator.report import CaseResult
from space.markup import chip, el, join, note, number, pairs, percent, section, table
from space.rundetail.parts import report_of
from space.site import Site
from space.snapshot import RunDetail

PAGE = 60
MAX_METRICS = 12


def case_pages(run: RunDetail) -> int:
    """How many pages the cases fill."""
    report = report_of(run).value
    return max(1, -(-len(report.cases) // PAGE)) if report else 1


def cases(run: RunDetail, page: int) -> Markup:
    """The cases of one page, counted from 1, below what holds for all of them."""
    report = report_of(run)
    if report.value is None:
        return note(report.missing, "warning")
    shown = report.value.cases[(page - 1) * PAGE : page * PAGE]
    names = _metric_names(shown)
    previews = run.previews
    heads = ["case", "status", "score x100", *map(_named, names), "flags and errors"]
    rows = [_row(run, case, names, case.case_id in previews) for case in shown]
    caption = (
        f"Cases {(page - 1) * PAGE + 1} to {(page - 1) * PAGE + len(shown)} of {len(report.value.cases)}"
    )
    return el("div", _aggregates(run), table(heads, rows, caption=caption, class_="amb-wide"))


def _metric_names(cases: Sequence[CaseResult]) -> list[str]:
    return sorted({name for case in cases for name in case.metrics})[:MAX_METRICS]


def _named(name: str) -> Markup:
    """A metric's name, and its definition where the pointer rests."""
    info = metric_info(name)
    return el("abbr", name, title=f"{info.definition} {info.range}" if info else None)


def _row(run: RunDetail, case: CaseResult, names: Sequence[str], has_preview: bool) -> list[object]:
    target = Site.link("compare", task=run.record.task, runs=run.run_id, case=case.case_id)
    link = el("a", case.case_id, href=Markup(target))
    picture = None
    if has_preview:
        picture = el(
            "img", src=Site.file_url(run.run_id, f"previews/{case.case_id}.webp"), loading="lazy",
            alt=f"Preview of case {case.case_id}", class_="amb-thumb",
        )  # fmt: skip
    metrics = [number(case.metrics.get(name)) for name in names]
    return [join([link, picture]), _status(case), percent(case.score), *metrics, _remarks(case)]


def _status(case: CaseResult) -> Markup:
    return chip(case.status, "good" if case.status == "scored" else "bad")


def _remarks(case: CaseResult) -> Markup:
    said = [chip(flag) for flag in case.flags]
    if case.error:
        said += [chip(case.error.code, "bad"), el("span", case.error.message, class_="amb-reason")]
    return join(said, " ")


def _aggregates(run: RunDetail) -> Markup:
    report = report_of(run).value
    assert report is not None, "only a run with a report has cases"
    figures = [(_named(name), number(value)) for name, value in sorted(report.aggregates.items())]
    ungated = percent(report.task_score_ungated)
    head = [
        ("task score", f"{percent(report.task_score)} (without the completeness gate {ungated})"),
        ("skill over doing nothing", number(report.skill, 3)),
        ("valid and complete", f"{report.n_scored} of {report.n_cases} cases scored"),
    ]
    lacks = [el("li", el("code", name), f": {why}") for name, why in sorted(report.unavailable.items())]
    return join(
        [
            pairs(head),
            section("All metrics of the run", pairs(figures), open_=False),
            section("Not computed here", el("ul", lacks), open_=False) if lacks else None,
        ]
    )
