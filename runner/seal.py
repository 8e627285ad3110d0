"""Assemble the record of a run from the files of its folder, and from nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, timedelta
from pathlib import Path

from evaluator import stages
from evaluator.files import sha256_file
from evaluator.judge.judgement import Judgement
from evaluator.judge.spans import StageSpan
from evaluator.report import TaskReport
from evaluator.trace import End, EndReason, PolicySign, iter_trace
from hf_datasets.records import ItemScore, RunLimits, RunRecord
from runner import cell as files
from runner.cell import CellFile
from runner.egress.ledger import downloads_of
from runner.provenance import Hardware
from tasks.schema import Task


@dataclass(frozen=True)
class Sealed:
    """What is known of an ended run. ``report`` and ``judgement`` are None where it could not be scored."""

    folder: Path
    cell: CellFile
    task: Task
    end: End
    report: TaskReport | None
    judgement: Judgement | None
    error_codes: tuple[str, ...]
    evaluator_environment: str | None
    stages: tuple[StageSpan, ...] = ()


@dataclass(frozen=True)
class Scores:
    overall: float | None = None
    agentic: float | None = None
    task: float | None = None
    ungated: float | None = None
    s1: float | None = None
    s2: float | None = None
    s3: float | None = None
    s4: float | None = None
    s5: float | None = None


def score(run: Sealed) -> Scores:
    """Stage and total scores; everything is None without a report, everything is 0 after a policy end."""
    if run.report is None:
        return Scores()
    if run.end.reason is EndReason.POLICY:
        return Scores(*[0.0] * 9)
    judged = run.judgement
    s1, s2, s3 = (judged.s1, judged.s2, judged.s3) if judged else (None, None, None)
    s4, s5 = stages.s4(run.report), stages.s5(run.report)
    agentic = stages.agentic(s1, s2, s3, s4, s5)
    overall = stages.overall(agentic, run.report.task_score)
    return Scores(overall, agentic, run.report.task_score, run.report.task_score_ungated, s1, s2, s3, s4, s5)


def assemble_record(run: Sealed, end_reason_detail: str | None = None) -> RunRecord:
    """The record of a run; the same folder always gives the same record."""
    cell, end, report, judgement = run.cell, run.end, run.report, run.judgement
    panel = judgement.panel if judgement else None
    scores = score(run)
    downloads = downloads_of(run.folder / files.DOWNLOADS)
    # The end of the run, not the time of sealing: a record can be assembled again, bit for bit.
    finished = cell.created_at.astimezone(UTC) + timedelta(seconds=end.wall_seconds)
    return RunRecord(
        run_id=cell.run_id,
        task=cell.task,
        track=run.task.track,
        tier=cell.tier,
        release=cell.release,
        agent=cell.agent,
        model=cell.model,
        repeat=cell.repeat,
        attempt=cell.attempt,
        overall=scores.overall,
        agentic=scores.agentic,
        task_score=scores.task,
        task_score_ungated=scores.ungated,
        skill=report.skill if report else None,
        s1=scores.s1,
        s2=scores.s2,
        s3=scores.s3,
        s4=scores.s4,
        s5=scores.s5,
        items=_items(judgement),
        metric=run.task.metric.headline,
        metric_set=report.metric_set if report else None,
        metrics=dict(report.aggregates) if report else {},
        n_cases=cell.n_cases,
        n_scored=report.n_scored if report else 0,
        completion=report.completion if report else None,
        end_reason=end.reason,
        end_detail=(end.detail if end_reason_detail is None else end_reason_detail)[:500],
        error_codes=run.error_codes,
        turns=end.turns,
        tokens_in=end.usage.input,
        tokens_out=end.usage.output,
        tokens_cached=end.usage.cached,
        cost_usd=end.cost_usd,
        price_source=cell.price_source,
        seconds_working=end.working_seconds,
        seconds_wall=end.wall_seconds,
        stages=run.stages,
        started_at=cell.created_at,
        finished_at=finished,
        harness_version=cell.harness_version,
        code_sha256=cell.code_sha256,
        task_sha256=cell.task_sha256,
        manifest_sha256=cell.manifest_sha256,
        brief_sha256=cell.brief_sha256,
        sandbox=cell.sandbox,
        network=cell.network,
        agent_environment=cell.agent_environment,
        evaluator_environment=run.evaluator_environment,
        judge=judgement.judge if judgement else None,
        judge_model=judgement.judge_model if judgement else None,
        judge_sha256=judgement.judge_sha256 if judgement else None,
        judge_same_family=judgement.same_family if judgement else None,
        judge_votes=panel.size if panel else None,
        judge_alpha=panel.alpha if panel else None,
        judge_tokens=panel.tokens_in + panel.tokens_out if panel else None,
        judge_cost_usd=panel.cost_usd if panel else None,
        rubric_sha256=judgement.rubric_sha256 if judgement else None,
        evidence_sha256=judgement.evidence_sha256 if judgement else None,
        limits=RunLimits.model_validate(cell.limits.model_dump()),
        cpu_count=cell.cpu_count,
        memory_mb=cell.memory_mb,
        gpus=cell.gpus,
        hardware_class=Hardware(cell.cpu_count, cell.memory_mb, cell.gpus).hardware_class,
        data_revision=cell.data_revision,
        policy_warnings=_warnings(run.folder / files.TRACE),
        flags=tuple(sorted({*(report.flags if report else ()), *downloads.flags})),
        downloads=downloads.requests,
        downloaded_bytes=downloads.received,
        downloads_sha256=_digest(run.folder / files.DOWNLOADS),
        cell_sha256=sha256_file(run.folder / files.CELL),
        trace_sha256=sha256_file(run.folder / files.TRACE),
        submission_sha256=_digest(run.folder / files.SUBMISSION / files.MANIFEST),
        report_sha256=_digest(run.folder / files.REPORT) if report else None,
        judgement_sha256=_digest(run.folder / files.JUDGEMENT) if judgement else None,
        supersedes=_digest(run.folder / files.RECORD),
    )


def _items(judgement: Judgement | None) -> tuple[ItemScore, ...]:
    if judgement is None:
        return ()
    return tuple(
        ItemScore(
            id=item.id, stage=item.stage, value=item.value, applies=item.applies, agreement=item.agreement
        )
        for item in judgement.items
    )


def _warnings(trace: Path) -> int:
    return sum(isinstance(event, PolicySign) and event.action == "warned" for event in iter_trace(trace))


def _digest(path: Path) -> str | None:
    return sha256_file(path) if path.is_file() else None
