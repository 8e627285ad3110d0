"""One run on a page: scores, items with their reasons, cases, cost and provenance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evaluator.judge.judgement import Judgement
from evaluator.report import TaskReport
from hf_datasets.records import RunRecord, load_record
from runner import cell as files
from runner.cell import Form, read_form
from runner.tables import plain

MAX_CASES = 40


def describe(folder: Path, as_json: bool = False) -> str:
    """The run in ``folder`` as text or JSON; files that are not there yet are left out."""
    record = _record(folder)
    report = _load(folder / files.REPORT, TaskReport)
    judgement = _load(folder / files.JUDGEMENT, Judgement)
    if as_json:
        parts: dict[str, Any] = {
            "folder": str(folder),
            "record": record,
            "report": report,
            "judgement": judgement,
        }
        return json.dumps(parts, indent=1, default=lambda model: model.model_dump(mode="json"))
    if record is None:
        return f"{folder}: unfinished; run the cell again to go on"
    lines = [*_head(folder, record), *_scores(record)]
    if judgement is not None:
        lines += _items(judgement)
    if report is not None:
        lines += _cases(report)
    return "\n".join([*lines, *_provenance(record)])


def _record(folder: Path) -> RunRecord | None:
    for name in (files.RECORD, files.UNSCORED):
        if (folder / name).is_file():
            return load_record(folder / name)
    return None


def _load(path: Path, form: type[Form]) -> Form | None:
    return read_form(path, form) if path.is_file() else None


def _head(folder: Path, record: RunRecord) -> list[str]:
    ended = record.end_reason.value + (f" ({record.end_detail})" if record.end_detail else "")
    return [
        f"{record.task} | {record.tier.value} | {record.release.value} | {record.agent} | repeat {record.repeat}",
        f"folder      {plain(folder)}",
        f"ended       {plain(ended)}",
        f"cost        {record.turns} turns, {record.seconds_working:.1f} s working, "
        f"{record.tokens_in} + {record.tokens_out} tokens, {_usd(record.cost_usd)}",
        f"error codes {', '.join(record.error_codes) or 'none'}",
    ]


def _usd(cost: float | None) -> str:
    return "no price known" if cost is None else f"{cost:.4f} USD"


def _scores(record: RunRecord) -> list[str]:
    stages = "  ".join(
        f"{name.upper()} {_percent(getattr(record, name))}" for name in ("s1", "s2", "s3", "s4", "s5")
    )
    metrics = "  ".join(f"{name} {plain4(value)}" for name, value in sorted(record.metrics.items()))
    return [
        "",
        f"OVERALL {_percent(record.overall)}   AGENTIC {_percent(record.agentic)}   TASK {_percent(record.task_score)}"
        f"   (ungated {_percent(record.task_score_ungated)}, skill {_percent(record.skill)})",
        f"stages   {stages}   judge: {record.judge or 'none'}",
        f"metric   {record.metric} ({record.metric_set}); {record.n_scored}/{record.n_cases} cases scored",
        f"also     {metrics}",
    ]


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def plain4(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _items(judgement: Judgement) -> list[str]:
    lines = ["", "items"]
    for item in judgement.items:
        value = "n/a" if not item.applies else plain4(item.value)
        lines.append(f"  {item.id:<28} {value:>4}  {item.decided_by:<8} {plain(item.reason)}")
    return lines


def _cases(report: TaskReport) -> list[str]:
    lines = ["", "cases"]
    for case in report.cases[:MAX_CASES]:
        said = f"{case.error.code}: {case.error.message}" if case.error else "  ".join(
            f"{name} {plain4(value)}" for name, value in sorted(case.metrics.items())
        )  # fmt: skip
        lines.append(f"  {case.case_id:<18} {case.status:<8} {case.score:.4f}  {plain(said)}")
    if len(report.cases) > MAX_CASES:
        lines.append(f"  ... and {len(report.cases) - MAX_CASES} more (--json has all)")
    return lines


def _seen(record: RunRecord) -> list[str]:
    """Downloads, warnings and flags, where there are any."""
    lines = []
    if record.downloads:
        lines.append(f"downloads   {record.downloads} requests, {record.downloaded_bytes / 1e6:.1f} MB")
    if record.policy_warnings or record.flags:
        warned = [f"{record.policy_warnings} warnings"] if record.policy_warnings else []
        lines.append(f"signs       {', '.join([*warned, *record.flags])}")
    return lines


def _provenance(record: RunRecord) -> list[str]:
    return [
        "",
        f"made with   automedbench {record.harness_version}, code {record.code_sha256[:12]}, "
        f"task {record.task_sha256[:12]}, "
        f"data {record.manifest_sha256[:12]}, brief {record.brief_sha256[:12]}",
        f"isolation   {record.sandbox}, network {record.network}, agent environment {record.agent_environment[:19]}",
        *_seen(record),
        f"machine     {record.hardware_class}, {record.cpu_count} cores, {record.memory_mb} MiB",
        f"record      {record.run_id}, trace {record.trace_sha256[:12]}",
    ]
