"""Run folders as the runner leaves them, without running anything: record and report that belong together."""

from __future__ import annotations

import hashlib
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

from evaluator import stages
from evaluator.report import CaseError, CaseResult, TaskReport, dump_report
from hf_datasets.publish import Publication
from hf_datasets.records import RunRecord, dump_record
from hf_datasets.run_folders import read_cases, read_record

TASKS = ("vqa-rad-task", "kidney-seg-task", "bccd-det-task")
METRICS = ("macro_dice", "nsd_voxel", "hd95_directed_max", "volume_error", "dice_organ", "dice_lesion")
ITEMS = [
    ("S1", name)
    for name in ("plan_exists", "plan_pipeline", "plan_method", "plan_candidates", "plan_picture")
]
ITEMS += [
    ("S2", name) for name in ("weights_obtained", "input_checked", "environment_ready", "failures_fixed")
]
ITEMS += [("S3", "pilot_validated")]
LIMITS = dict.fromkeys(
    ("wall_seconds", "call_seconds", "turns", "tokens", "memory_mb", "disk_mb", "pids", "cpus"), 1
)
LIMITS |= {"cost_usd": None}
START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def make_report(number: int = 0, cases: int = 3) -> TaskReport:
    """A report of the run with that number; the last of many cases is missing."""
    chance = random.Random(number)
    rows = [
        _case(index, chance.random(), missing=index > 5 and index == cases - 1, chance=chance)
        for index in range(cases)
    ]
    scored = sum(row.status == "scored" for row in rows)
    mean = sum(row.score for row in rows) / cases if cases else 0.0
    return TaskReport(
        task=TASKS[number % 3], track="segmentation", release="phantom", metric="macro_dice", metric_set="default",
        task_score=mean if scored == cases else 0.0, task_score_ungated=mean, skill=mean, n_cases=cases,
        n_scored=scored,
        completion=scored / cases if cases else 0.0, all_valid=scored == cases, format_valid=True,
        aggregates={name: chance.random() for name in METRICS}, cases=tuple(rows), manifest_sha256=digest("manifest"),
    )  # fmt: skip


def _case(index: int, score: float, *, missing: bool, chance: random.Random) -> CaseResult:
    if missing:
        error = CaseError(code="missing", message="no such file")
        return CaseResult(case_id=f"case-{index:08x}", status="missing", score=0.0, error=error)
    metrics = {name: round(chance.random(), 12) for name in METRICS[:3]}
    return CaseResult(case_id=f"case-{index:08x}", status="scored", score=score, metrics=metrics)


def make_record(number: int = 0, report: TaskReport | None = None, **changes: object) -> RunRecord:
    """The record of the run with that number; other numbers give other ids, scores and digests."""
    report = report or make_report(number)
    chance = random.Random(number)
    levels = {stage: chance.choice((0.0, 0.5, 1.0)) for stage in ("s1", "s2", "s3")}
    s4, s5 = stages.s4(report), stages.s5(report)
    agentic = stages.agentic(levels["s1"], levels["s2"], levels["s3"], s4, s5)
    agent, tier = f"agent-{number % 7}", ("lite", "standard")[number % 2]
    started = START + timedelta(seconds=97 * number)
    values = dict(
        run_id=f"{report.task}.{tier}.{agent}.r{number:02d}-{digest(number)[:8]}", task=report.task,
        track=report.track, tier=tier, release="phantom", agent=agent, model=f"org/{agent}", repeat=number, attempt=1,
        overall=stages.overall(agentic, report.task_score), agentic=agentic, task_score=report.task_score,
        task_score_ungated=report.task_score_ungated, skill=report.skill, **levels, s4=s4, s5=s5,
        items=[{"id": name, "stage": stage, "value": 1.0, "applies": True} for stage, name in ITEMS],
        metric=report.metric, metric_set=report.metric_set, metrics=report.aggregates, n_cases=report.n_cases,
        n_scored=report.n_scored, completion=report.completion, end_reason="submitted", end_detail="",
        error_codes=("E5.missing_files",) if not report.all_valid else (), turns=chance.randrange(99),
        tokens_in=chance.randrange(10**6), tokens_out=chance.randrange(10**5), tokens_cached=0,
        cost_usd=round(chance.random(), 6), price_source="list", seconds_working=round(chance.random() * 1e4, 3),
        seconds_wall=round(chance.random() * 1e4, 3),
        stages=[
            dict(stage=stage, start=float(place), end=place + 1.0, turns=2, commands=2, failed_commands=0,
                 tokens_in=chance.randrange(10**5), tokens_out=99, seconds=round(chance.random(), 3), cost_usd=None)
            for place, stage in enumerate(("S1", "S2", "S3", "S4", "S5"))
        ],
        started_at=started, finished_at=started + timedelta(seconds=90), harness_version="0.1.0",
        code_sha256=digest("code"), task_sha256=digest(report.task), manifest_sha256=digest("manifest"),
        brief_sha256=digest("brief"), sandbox="docker", network="none", agent_environment="x",
        evaluator_environment="y",
        judge="rules", judge_model=None, rubric_sha256=digest("rubric"), evidence_sha256=digest(number, "evidence"),
        limits=LIMITS,
        cpu_count=2, memory_mb=1, gpus=(), hardware_class="cpu", cell_sha256=digest(number, "cell"),
        trace_sha256=digest(number, "trace"), submission_sha256=digest(number, "submission"),
        judgement_sha256=digest(number, "judgement"),
        report_sha256=hashlib.sha256(dump_report(report).encode()).hexdigest(),
    )  # fmt: skip
    return RunRecord.model_validate(values | changes)


def make_run(root: Path, number: int = 0, cases: int = 3, **changes: object) -> Path:
    """Write the run with that number below ``root``; its folder."""
    report = make_report(number, cases)
    record = make_record(number, report, **changes)
    folder = root / record.task / record.tier / record.agent / f"r{number:02d}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(dump_report(report))
    (folder / "record.json").write_text(dump_record(record))
    return folder


def scores(folder: Path) -> Publication:
    """The publication of a run of which only scores leave."""
    record, content = read_record(folder)
    return Publication(record, content, read_cases(folder, record))


def digest(*parts: object) -> str:
    return hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()
