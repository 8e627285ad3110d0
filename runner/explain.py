"""One run explained: stage by stage, every item with its value, its reason and the events it rests on.

Read from the run folder alone; neither staged data nor a judge is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluator.errors import FiredCode, detect_errors
from evaluator.fired import TITLES
from evaluator.judge.judgement import ItemResult, Judgement
from evaluator.judge.material import Assignment, Material, material_of
from evaluator.judge.rows import Quote, Row, rows_of
from evaluator.judge.spans import StageSpan, stage_spans
from evaluator.report import TaskReport
from evaluator.rubric import Item, Rubric, load_rubric
from evaluator.trace import read_trace
from hf_datasets.records import RunRecord, load_record
from runner import cell as files
from runner.cell import CellFile, read_form
from runner.errors import UsageProblem
from runner.tables import plain
from tasks.registry import load_task
from tasks.scoring import STAGE_NAMES, STAGE_WEIGHTS

_MAX_EVENTS = 6
_MAX_QUOTED_LINES = 3
_MAX_CHARS = 160


def explain(folder: Path, markdown: bool = False) -> str:
    """The run in ``folder`` as a page for the terminal, or as Markdown.

    Raises
    ------
    UsageProblem
        The run has no record yet.
    """
    return _Page(_load(folder), _Markdown() if markdown else _Terminal()).text()


@dataclass(frozen=True)
class _Run:
    folder: Path
    record: RunRecord
    report: TaskReport
    judgement: Judgement
    rubric: Rubric
    material: Material

    @property
    def codes(self) -> tuple[FiredCode, ...]:
        found = detect_errors(self.material.events, self.material.evidence, self.report)
        return (*found, *self.judgement.tags)


def _load(folder: Path) -> _Run:
    if not (folder / files.RECORD).is_file():
        raise UsageProblem(f"{folder}: expected a finished run with a record.json; run the cell again first")
    cell = read_form(folder / files.CELL, CellFile)
    task = load_task(cell.task)
    return _Run(
        folder=folder,
        record=load_record(folder / files.RECORD),
        report=read_form(folder / files.REPORT, TaskReport),
        judgement=read_form(folder / files.JUDGEMENT, Judgement),
        rubric=load_rubric(task.track),
        material=material_of(
            Assignment.of(task, cell.tier, cell.n_cases),
            read_trace(folder / files.TRACE),
            folder / files.SUBMISSION,
            gpus=cell.gpus,
        ),
    )


# --- two ways to set a page --------------------------------------------------------------------------


class _Terminal:
    def heading(self, text: str) -> str:
        return f"\n{text}\n{'-' * len(text)}"

    def item(self, name: str, value: str, by: str) -> str:
        return f"\n  {value:>5}  {name}  ({by})"

    def note(self, text: str) -> str:
        return f"         {text}"

    def quote(self, text: str) -> str:
        return f"           {text}"

    def foreign(self, text: str) -> str:
        return text


class _Markdown:
    def heading(self, text: str) -> str:
        return f"\n## {text}\n"

    def item(self, name: str, value: str, by: str) -> str:
        return f"- **{value}** `{name}` ({by})"

    def note(self, text: str) -> str:
        return f"  - {text}"

    def quote(self, text: str) -> str:
        return f"    - {text}"

    def foreign(self, text: str) -> str:
        """Text of a stranger: shown as it is, never rendered."""
        fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
        return f"{fence} {text} {fence}"


_Style = _Terminal | _Markdown


class _Page:
    def __init__(self, run: _Run, style: _Style) -> None:
        self._run = run
        self._style = style
        self._rows = {row.seq: row for row in rows_of(run.material.events, run.material.evidence)}

    def text(self) -> str:
        lines = [*self._head(), *self._stages(), *self._codes(), *self._scores()]
        return "\n".join(lines).strip() + "\n"

    def _head(self) -> Iterator[str]:
        record, judgement = self._run.record, self._run.judgement
        yield self._style.heading(f"{record.task}, {record.tier.value} tier, repeat {record.repeat}")
        yield self._style.note(f"agent {record.agent}, release {record.release.value}, run {record.run_id}")
        yield self._style.note(
            f"ended: {record.end_reason.value} {plain(record.end_detail or '')}".rstrip(" -")
        )
        panel = judgement.panel
        model = f" ({judgement.judge_model})" if judgement.judge_model else ""
        yield self._style.note(f"judge: {judgement.judge}{model}{_panel(judgement)}")
        if panel is not None:
            cost = "no price known" if panel.cost_usd is None else f"{panel.cost_usd:.4f} USD"
            yield self._style.note(f"judging took {panel.tokens_in} + {panel.tokens_out} tokens, {cost}")

    # --- stages ---

    def _stages(self) -> Iterator[str]:
        record = self._run.record
        for span in stage_spans(self._run.material.events, self._run.material.evidence):
            value = getattr(record, span.stage.lower())
            yield self._style.heading(f"{span.stage} {STAGE_NAMES[span.stage]}: {_percent(value)}")
            yield self._style.note(
                f"{_span(span)}; weighs {100 * STAGE_WEIGHTS[span.stage]:.0f} % of AGENTIC"
            )
            for result in self._run.judgement.items:
                if result.stage == span.stage:
                    yield from self._item(self._run.rubric.item(result.id), result)
            if span.stage in ("S4", "S5"):
                yield from self._computed(span)

    def _item(self, item: Item, result: ItemResult) -> Iterator[str]:
        by = "program" if result.decided_by == "program" else f"judge: {result.decided_by}"
        yield self._style.item(item.id, _value(result), by)
        yield self._style.note(item.question)
        yield self._style.note(f"because {self._style.foreign(_short(result.reason))}")
        if result.votes:
            cast = ", ".join(f"{vote:g}" for vote in result.votes)
            yield self._style.note(f"votes {cast}; agreement {_percent(result.agreement)}")
        yield from self._events(result.evidence)

    def _events(self, seqs: Sequence[int]) -> Iterator[str]:
        for seq in seqs[:_MAX_EVENTS]:
            row = self._rows.get(seq)
            yield self._style.note(
                self._style.foreign(_short(_named(row))) if row else f"event {seq}: not in the trace"
            )
            yield from (self._style.quote(self._style.foreign(line)) for line in _quoted(row))
        if len(seqs) > _MAX_EVENTS:
            yield self._style.note(f"and {len(seqs) - _MAX_EVENTS} more events")

    def _computed(self, span: StageSpan) -> Iterator[str]:
        report = self._run.report
        if span.stage == "S4":
            yield self._style.item("completion", _percent(report.completion), "program")
            yield self._style.item("all outputs present and valid", _yes(report.all_valid), "program")
        else:
            positive = any(case.status == "scored" and case.score > 0 for case in report.cases)
            yield self._style.item("a case with a positive score", _yes(positive), "program")
            yield self._style.item("format valid", _yes(report.format_valid), "program")

    # --- codes and scores ---

    def _codes(self) -> Iterator[str]:
        yield self._style.heading("Error codes (diagnostic, never scored)")
        if not self._run.codes:
            yield self._style.note("none")
        for fired in self._run.codes:
            yield self._style.item(f"{fired.name}", fired.stage, f"{TITLES[fired.code]}; {fired.found_by}")
            yield self._style.note(self._style.foreign(_short(fired.reason)))
            yield from self._events(fired.events)

    def _scores(self) -> Iterator[str]:
        record = self._run.record
        yield self._style.heading("Scores")
        for name, value in (
            ("OVERALL", record.overall),
            ("AGENTIC", record.agentic),
            ("TASK", record.task_score),
        ):
            yield self._style.item(name, _percent(value), "x 100")
        yield self._style.note(
            f"{record.metric} ({record.metric_set}), {record.n_scored} of {record.n_cases} cases scored"
        )


def _panel(judgement: Judgement) -> str:
    panel = judgement.panel
    if panel is None:
        return ""
    alpha = "not defined" if panel.alpha is None else f"{panel.alpha:.2f}"
    family = ", of the agent's own provider" if judgement.same_family else ""
    return f", {panel.size} votes, alpha {alpha}{family}"


def _span(span: StageSpan) -> str:
    if not span.turns:
        return "no turns"
    cost = "" if span.cost_usd is None else f", {span.cost_usd:.4f} USD"
    return (
        f"{span.start:.0f} to {span.end:.0f} s, {span.turns} turns, {span.commands} commands "
        f"({span.failed_commands} failed), "
        f"{span.tokens_in} + {span.tokens_out} tokens, {span.seconds:.0f} s of work{cost}"
    )


def _value(result: ItemResult) -> str:
    if not result.applies:
        return "n/a"
    return "null" if result.value is None else f"{result.value:g}"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _percent(value: float | None) -> str:
    return "null" if value is None else f"{100 * value:.1f}"


def _short(text: str) -> str:
    text = plain(text)
    return text if len(text) <= _MAX_CHARS else text[: _MAX_CHARS - 1] + "…"


def _named(row: Row) -> str:
    """What happened; the judge's short name of an event looks like an error code to a reader."""
    return f"event {row.seq}, {row.head.removeprefix(f'E{row.seq} ')}"


def _quoted(row: Row | None) -> Iterator[str]:
    """The last lines of what a command printed: what was found, or what went wrong."""
    printed = [quote for quote in row.quotes if quote.label == "output"] if row else []
    for quote in printed:
        yield from _last_lines(quote)


def _last_lines(quote: Quote) -> Iterator[str]:
    lines = [line for line in quote.text.splitlines() if line.strip()]
    return (f"| {_short(line)}" for line in lines[-_MAX_QUOTED_LINES:])
