"""Rubric items with who decided them, why, and the events of the trace that they rest on."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from evaluator.judge.judgement import ItemResult, Judgement
from evaluator.rubric import Rubric, load_rubric
from hf_datasets.records import ItemScore, RunRecord
from space.markup import chip, el, join, note, number, pairs, percent, section, table
from space.rundetail.parts import judgement_of
from space.site import Site
from space.snapshot import RunDetail
from tasks.scoring import STAGE_NAMES

MAX_LINKS = 12


def items(run: RunDetail) -> Markup:
    """Stage by stage; without a judgement, the values that the record keeps."""
    record, judged = run.record, judgement_of(run)
    rubric = load_rubric(record.track)
    if judged.value is None:
        kept = _kept(record, rubric) if record.items else None
        return join([note(judged.missing, "warning"), kept])
    stages = ("S1", "S2", "S3")
    tables = [_stage(run, judged.value, rubric, stage) for stage in stages]
    return el("div", _judge(judged.value), tables)


def _judge(judgement: Judgement) -> Markup:
    panel = judgement.panel
    rows: list[tuple[object, object]] = [
        ("judge", judgement.judge_model or f"{judgement.judge} (no model)"),
        ("complete", "yes" if judgement.is_complete else "no: an item that applies has no value"),
    ]
    if panel is not None:
        rows += [
            ("votes", panel.size),
            ("Krippendorff's alpha", number(panel.alpha, 3)),
            ("tokens", f"{panel.tokens_in:,} + {panel.tokens_out:,}"),
        ]
    return pairs(rows)


def _stage(run: RunDetail, judgement: Judgement, rubric: Rubric, stage: str) -> Markup:
    results = [item for item in judgement.items if item.stage == stage]
    value = getattr(judgement, stage.lower())
    rows = [
        [
            el("code", item.id),
            _value(item),
            _question(rubric, item.id),
            el("span", item.reason, class_="amb-reason"),
            _evidence(run, item.evidence),
            _decided(item),
        ]
        for item in results
    ]
    heads = ("item", "value", "question", "because", "evidence", "decided by")
    title = f"{stage} {STAGE_NAMES[stage]}: {percent(value)}"
    return section(title, table(heads, rows, caption=f"Items of {stage}", class_="amb-wide"))


def _value(item: ItemResult | ItemScore) -> Markup:
    if not item.applies:
        return chip("n/a", title="Left out of the stage's mean")
    if item.value is None:
        return chip("unscored", "bad")
    return chip(f"{item.value:g}", "good" if item.value == 1 else "bad" if item.value == 0 else "half")


def _question(rubric: Rubric, item_id: str) -> str:
    return next(
        (item.question for item in rubric.items if item.id == item_id), "not in this version's rubric"
    )


def _decided(item: ItemResult) -> Markup:
    if not item.votes:
        return join([item.decided_by])
    votes = ", ".join(f"{vote:g}" for vote in item.votes)
    return join(
        [item.decided_by, el("br"), el("small", f"votes {votes}; agreement {percent(item.agreement, 0)} %")]
    )


def _evidence(run: RunDetail, events: Sequence[int]) -> Markup:
    return (
        event_links(run.run_id, events)
        if run.trace
        else join([", ".join(f"#{seq}" for seq in events) or "–"])
    )


def event_links(run_id: str, events: Sequence[int]) -> Markup:
    """Links to events of the trace."""
    if not events:
        return join(["–"])
    links = [
        el("a", f"#{seq}", href=Site.link("run", run=run_id, section="Trace", event=seq))
        for seq in events[:MAX_LINKS]
    ]
    more = f" and {len(events) - MAX_LINKS} more" if len(events) > MAX_LINKS else None
    return join([join(links, " "), more])


def _kept(record: RunRecord, rubric: Rubric) -> Markup:
    rows = [
        [el("code", item.id), item.stage, _value(item), _question(rubric, item.id)] for item in record.items
    ]
    return table(("item", "stage", "value", "question"), rows, caption="Items as the record keeps them")
