"""Stages along the clock, how the run ended, its error codes, and what these results lack of it."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from evaluator.fired import TITLES
from evaluator.judge.spans import StageSpan
from hf_datasets.records import RunRecord
from space.markup import chip, dollars, duration, el, note, pairs, section, table
from space.palette import PALETTE
from space.rundetail.parts import judgement_of, report_of, why_missing
from space.site import Site
from space.snapshot import RunDetail
from tasks.scoring import STAGE_NAMES


def overview(run: RunDetail) -> Markup:
    """The first section."""
    record = run.record
    return el(
        "div",
        section("Stages along the clock", timeline(record.stages)),
        section("How it ended", _end(record)),
        section("Error codes", _codes(record)),
        _missing(run),
        _others(record),
    )


def timeline(spans: Sequence[StageSpan]) -> Markup:
    """A bar with the share of every stage, and the figures as a table."""
    if not spans:
        return note("The record holds no stages: the run was not scored.")
    total = max(span.end for span in spans) or 1.0
    bars = [
        el(
            "li", el("span", span.stage, class_="amb-stage-name"),
            style=f"flex-grow:{max(0.001, (span.end - span.start) / total):.4f};--stage:{PALETTE.of(number)}",
            title=f"{span.stage} {STAGE_NAMES[span.stage]}: {duration(span.end - span.start)}",
            class_="amb-stage" if span.turns else "amb-stage amb-empty",
        )
        for number, span in enumerate(spans)
    ]  # fmt: skip
    rows = [
        [
            f"{span.stage} {STAGE_NAMES[span.stage]}",
            f"{duration(span.start)} – {duration(span.end)}",
            duration(span.seconds),
            span.turns,
            f"{span.commands} ({span.failed_commands} failed)",
            f"{span.tokens_in:,} + {span.tokens_out:,}",
            dollars(span.cost_usd),
        ]
        for span in spans
    ]
    heads = ("stage", "on the clock", "working", "turns", "commands", "tokens in + out", "cost")
    line = el("ol", bars, class_="amb-timeline", aria_label="Shares of the stages in the run's time")
    return el("div", line, table(heads, rows, caption="What each stage took"))


def _end(record: RunRecord) -> Markup:
    return pairs(
        [
            ("reason", record.end_reason.value),
            ("detail", record.end_detail or "–"),
            ("started", f"{record.started_at:%Y-%m-%d %H:%M:%S} UTC"),
            ("finished", f"{record.finished_at:%Y-%m-%d %H:%M:%S} UTC"),
        ]
    )


def _codes(record: RunRecord) -> Markup:
    if not record.error_codes:
        return el("p", "None fired. Codes are diagnostic and never scored.")
    colours = dict(PALETTE.codes)
    items = [
        el("li", chip(code, "amb-code"), " ", code_title(code),
           style=f"--code:{colours.get(_family(code), '#777777')}")
        for code in record.error_codes
    ]  # fmt: skip
    more = el("a", "with their evidence", href=Site.link("run", run=record.run_id, section="Errors"))
    return el("div", el("ul", items, class_="amb-codes"), el("p", "See them ", more, "."))


def code_title(code: str) -> str:
    """What the family of ``E5.missing_files`` is called."""
    titles = {str(family): title for family, title in TITLES.items()}
    return titles.get(_family(code), "not a code of this version")


def _family(code: str) -> str:
    return code.partition(".")[0]


def _missing(run: RunDetail) -> Markup | None:
    """One sentence for every part that is not there."""
    lacks = [report_of(run).missing, judgement_of(run).missing]
    lacks += [
        why_missing(run, what)
        for what, there in (("trace", run.trace), ("previews", run.previews), ("plan", run.plan))
        if not there
    ]
    said = [text for text in lacks if text]
    if not said:
        return None
    return section("What is not here", el("ul", [el("li", text) for text in said]))


def _others(record: RunRecord) -> Markup:
    links = [
        el(
            "a",
            "Compare with other runs of this task",
            href=Site.link("compare", task=record.task, runs=record.run_id),
        ),
        el("a", "The task and its board", href=Site.link("tasks", task=record.task)),
    ]
    return section("Further", el("ul", [el("li", link) for link in links]))
