"""A big results folder, made up: run folders of agents that do not exist, in the form the runner writes.

For measuring and testing how results are read and shown. No score in it was ever reached by anybody; the agents' names
are those of clouds. Records, reports and traces follow the schemas and hang together: totals follow from stages, stages
from items, error codes from how a run ended.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from evaluator.judge.judgement import ItemResult, Judgement
from evaluator.judge.spans import StageSpan
from evaluator.report import CaseError, CaseResult, TaskReport, dump_report
from evaluator.rubric import load_rubric
from evaluator.stages import agentic, overall
from evaluator.trace import (
    Call,
    End,
    EndReason,
    Event,
    Exec,
    FileChange,
    Files,
    Reply,
    RunStarted,
    Submit,
    Usage,
)
from hf_datasets.records import ItemScore, RunLimits, RunRecord, dump_record
from tasks.names import Release, Tier
from tasks.registry import all_tasks, load_task
from tasks.schema import Task

AGENTS = {
    "cirrus": ("cirrus-labs/cirrus-9", 0.78, 14.0),
    "nimbus": ("nimbus-ai/nimbus-large", 0.62, 2.6),
    "stratus": ("stratus/stratus-mini", 0.45, 0.4),
}
"""Name -> model, how good it is, US dollars a million tokens."""
_TRACK_EASE = {"detection": 0.15, "enhancement": 0.1, "segmentation": -0.05, "vqa": -0.05, "report": -0.2}
_START = datetime(2026, 6, 1, tzinfo=UTC)
_CASES = 6


@dataclass(frozen=True)
class Made:
    """One made-up run."""

    record: RunRecord
    report: TaskReport
    judgement: Judgement
    events: tuple[Event, ...]


def write_results(
    out: Path,
    agents: Sequence[str] = tuple(AGENTS),
    tasks: Sequence[str] | None = None,
    tiers: Sequence[Tier] = (Tier.LITE, Tier.STANDARD),
    repeats: int = 3,
    *,
    files: bool = True,
    seed: int = 0,
) -> list[Path]:
    """Write ``<task>/<tier>/<agent>/r<NN>/`` below ``out``; without ``files``, the records alone. The run folders."""
    folders = []
    for made in make_runs(agents, tasks, tiers, repeats, seed):
        record = made.record
        folder = out / record.task / record.tier.value / record.agent / f"r{record.repeat:02d}"
        write_run(folder, made, files=files)
        folders.append(folder)
    return folders


def make_runs(
    agents: Sequence[str],
    tasks: Sequence[str] | None,
    tiers: Sequence[Tier],
    repeats: int,
    seed: int = 0,
) -> Iterator[Made]:
    for task in [load_task(name) for name in tasks] if tasks else all_tasks():
        for tier in tiers:
            for agent in agents:
                for repeat in range(repeats):
                    yield make_run(task, tier, agent, repeat, seed)


def make_run(task: Task, tier: Tier, agent: str, repeat: int, seed: int = 0) -> Made:
    """The same arguments always give the same run."""
    rng = random.Random(f"{task.id} {tier} {agent} {repeat} {seed}")
    model, skill, price = AGENTS.get(agent) or (f"made/{agent}", rng.uniform(0.3, 0.8), 1.0)
    good = skill + _TRACK_EASE.get(task.track, 0.0) + (0.03 if tier is Tier.LITE else 0.0)
    report = _report(task, rng, good)
    judgement = _judgement(task, rng, good)
    events = _events(task, tier, agent, model, rng, report, price)
    return Made(
        _record(task, tier, agent, model, repeat, rng, report, judgement, events), report, judgement, events
    )


def write_run(folder: Path, made: Made, *, files: bool = True) -> None:
    folder.mkdir(parents=True)
    record = made.record
    if files:
        trace = b"".join(_lines(made.events))
        texts = {
            "trace.jsonl": trace,
            "report.json": dump_report(made.report).encode(),
            "judgement.json": (made.judgement.model_dump_json(indent=1) + "\n").encode(),
        }
        digests = {"trace_sha256": _sha(trace), "report_sha256": _sha(texts["report.json"]),
                   "judgement_sha256": _sha(texts["judgement.json"])}  # fmt: skip
        record = record.model_copy(update=digests)
        for name, text in texts.items():
            (folder / name).write_bytes(text)
        (folder / "workspace").mkdir()
        (folder / "workspace" / "plan.md").write_text(_PLAN.format(task=record.task), "utf-8")
    (folder / "record.json").write_text(dump_record(record), "utf-8")


# --- the parts of a run ---


def _report(task: Task, rng: random.Random, good: float) -> TaskReport:
    cases = []
    spoiled = rng.random() > good + 0.25
    for number in range(_CASES):
        name = f"case-{_sha(f'{task.id} {number}'.encode())[:8]}"
        score = min(1.0, max(0.0, rng.gauss(good, 0.12)))
        error = None
        status = "scored"
        if spoiled and rng.random() < 0.5:
            status, code = rng.choice([("missing", "missing"), ("invalid", "wrong_shape")])
            error, score = (
                CaseError(code=code, message=f"{task.output.filenames[0]}: {code.replace('_', ' ')}"),
                0.0,
            )
        metrics = {task.metric.headline: score} if error is None else {}
        cases.append(CaseResult(case_id=name, status=status, score=score, error=error, metrics=metrics))
    scored = [case for case in cases if case.status == "scored"]
    mean = sum(case.score for case in cases) / len(cases)
    complete = len(scored) == len(cases)
    return TaskReport(
        task=task.id,
        track=task.track,
        release=Release.PHANTOM,
        metric=task.metric.headline,
        metric_set=task.metric.sets[0],
        task_score=mean if complete or task.track != "segmentation" else 0.0,
        task_score_ungated=mean,
        skill=max(-1.0, (mean - 0.2) / 0.8),
        n_cases=len(cases),
        n_scored=len(scored),
        completion=len(scored) / len(cases),
        all_valid=complete,
        format_valid=not any(case.status == "invalid" for case in cases) and bool(scored),
        aggregates={task.metric.headline: mean},
        cases=tuple(cases),
        manifest_sha256=_sha(task.id.encode()),
    )


def _judgement(task: Task, rng: random.Random, good: float) -> Judgement:
    rubric = load_rubric(task.track)
    items = []
    for item in rubric.items:
        value = float(rng.random() < good + 0.1)
        if item.levels:
            value = rng.choices(
                [level.value for level in item.levels], [1 - good, *[1.0] * (len(item.levels) - 1)]
            )[0]
        reason = "seen in the trace" if value else "nothing in the trace shows it"
        decided = "program" if item.decided_by == "program" else "rules"
        items.append(
            ItemResult(
                id=item.id, stage=item.stage, value=value, decided_by=decided, reason=reason, evidence=(1, 2)
            )
        )
    by_stage = {
        stage: [item.value or 0.0 for item in items if item.stage == stage] for stage in ("S1", "S2", "S3")
    }
    means = {stage.lower(): sum(values) / len(values) for stage, values in by_stage.items()}
    return Judgement(
        judge="rules",
        rubric_sha256=rubric.sha256,
        evidence_sha256=_sha(b"evidence"),
        items=tuple(items),
        **means,
    )


def _events(
    task: Task, tier: Tier, agent: str, model: str, rng: random.Random, report: TaskReport, price: float
) -> tuple[Event, ...]:
    turns = rng.randint(7, 18)
    events: list[Event] = [
        RunStarted(at=_START.isoformat(), task=task.id, tier=tier.value, release="phantom", agent=agent,
                   model=model, brief_sha256=_sha(b"brief"), cases=report.n_cases)
    ]  # fmt: skip
    tokens_in = tokens_out = 0
    for turn in range(1, turns + 1):
        usage = Usage(input=rng.randint(3000, 60000), output=rng.randint(100, 2500))
        tokens_in, tokens_out = tokens_in + usage.input, tokens_out + usage.output
        last = turn == turns
        name, arguments = ("submit_results", {"summary": "all cases written"}) if last else (
            "execute_code", {"language": "python", "code": f"import method\nmethod.step({turn})\n"})  # fmt: skip
        call = Call(id=f"call-{turn}", name=name, arguments=json.dumps(arguments))
        cost = (usage.input + usage.output) * price / 1e6
        events.append(Reply(turn=turn, text=_SAYS[min(turn, len(_SAYS)) - 1], calls=(call,), usage=usage, cost_usd=cost,
                            seconds=rng.uniform(1, 20), finish="tool_calls"))  # fmt: skip
        if last:
            missing = report.n_cases - report.n_scored
            events.append(Submit(turn=turn, call=call.id, summary="all cases written", missing_total=missing,
                                 accepted=True))  # fmt: skip
            continue
        failed = rng.random() < 0.1
        output = _FAILS if failed else f"step {turn}: ok\n"
        events.append(Exec(turn=turn, call=call.id, language="python", exit_code=int(failed),
                           seconds=rng.uniform(1, 60), output=output, output_bytes=len(output)))  # fmt: skip
        done = report.n_scored if turn == turns - 1 else 0
        change = (FileChange(path="plan.md", size=900, change="created"),) if turn == 2 else ()
        new = tuple(case.case_id for case in report.cases if case.status == "scored") if done else ()
        events.append(Files(turn=turn, call=call.id, changes=change, new_cases=new, new_cases_total=done,
                            complete_cases=done))  # fmt: skip
    working = sum(getattr(event, "seconds", 0.0) for event in events)
    events.append(End(reason=EndReason.SUBMITTED, turns=turns, usage=Usage(input=tokens_in, output=tokens_out),
                      cost_usd=(tokens_in + tokens_out) * price / 1e6, working_seconds=working,
                      wall_seconds=working + 5))  # fmt: skip
    placed = []
    for number, event in enumerate(events):
        placed.append(event.model_copy(update={"seq": number, "t": round(working * number / len(events), 3)}))
    return tuple(placed)


def _lines(events: Sequence[Event]) -> Iterator[bytes]:
    previous = ""
    for event in events:
        head = {"type": event.type, "seq": event.seq, "t": event.t, "prev": previous}
        body = head | event.model_dump(mode="json", exclude_defaults=True)
        line = json.dumps(body | {"prev": previous}, ensure_ascii=False, separators=(",", ":")).encode()
        previous = _sha(line)[:32]
        yield line + b"\n"


def _record(
    task: Task, tier: Tier, agent: str, model: str, repeat: int, rng: random.Random,
    report: TaskReport, judgement: Judgement, events: Sequence[Event],
) -> RunRecord:  # fmt: skip
    s4 = 0.5 * report.completion + 0.5 * report.all_valid
    s5 = 0.5 * any(case.score > 0 for case in report.cases) + 0.5 * report.format_valid
    how = agentic(judgement.s1, judgement.s2, judgement.s3, s4, s5)
    end = events[-1]
    assert isinstance(end, End)
    started = _START + timedelta(hours=rng.randint(0, 24 * 120))
    return RunRecord(
        run_id=f"{task.id}.{tier.value}.{agent}.r{repeat:02d}-{rng.getrandbits(32):08x}",
        task=task.id, track=task.track, tier=tier, release=Release.PHANTOM, agent=agent, model=model, repeat=repeat,
        attempt=1,
        overall=overall(how, report.task_score), agentic=how, task_score=report.task_score,
        task_score_ungated=report.task_score_ungated, skill=report.skill,
        s1=judgement.s1, s2=judgement.s2, s3=judgement.s3, s4=s4, s5=s5,
        items=tuple(ItemScore(id=item.id, stage=item.stage, value=item.value, applies=item.applies)
                    for item in judgement.items),
        metric=report.metric, metric_set=report.metric_set, metrics=dict(report.aggregates), n_cases=report.n_cases,
        n_scored=report.n_scored, completion=report.completion,
        end_reason=end.reason, end_detail="", error_codes=_codes(rng, report, judgement),
        turns=end.turns, tokens_in=end.usage.input, tokens_out=end.usage.output, tokens_cached=0,
        cost_usd=end.cost_usd, price_source="made up", seconds_working=end.working_seconds,
        seconds_wall=end.wall_seconds, stages=_stages(end),
        started_at=started, finished_at=started + timedelta(seconds=end.wall_seconds), harness_version="0.1.0",
        code_sha256=_sha(b"code"), task_sha256=_sha(task.id.encode()), manifest_sha256=report.manifest_sha256,
        brief_sha256=_sha(b"brief"), sandbox="docker", network="none", agent_environment="sha256:made",
        evaluator_environment="sha256:made", judge="rules", judge_model=None, rubric_sha256=judgement.rubric_sha256,
        evidence_sha256=judgement.evidence_sha256, limits=RunLimits.model_validate(task.limits.model_dump()),
        cpu_count=2, memory_mb=24000, gpus=(), hardware_class="cpu", cell_sha256=_sha(b"cell"),
        trace_sha256=_sha(b"trace"), submission_sha256=_sha(b"submission"), report_sha256=_sha(b"report"),
        judgement_sha256=_sha(b"judgement"),
    )  # fmt: skip


def _codes(rng: random.Random, report: TaskReport, judgement: Judgement) -> tuple[str, ...]:
    codes = []
    if any(case.status == "missing" for case in report.cases):
        codes.append("E5.incomplete_coverage")
    if any(case.status == "invalid" for case in report.cases):
        codes.append("E5.malformed_files")
    if judgement.s3 == 0:
        codes.append("E3.validation_skipped")
    if codes and rng.random() < 0.3:
        codes.append(rng.choice(["E2.dependency", "E4.crash", "E4.shape_or_type", "E1.wrong_artifact"]))
    return tuple(sorted(codes))


def _stages(end: End) -> tuple[StageSpan, ...]:
    shares = (0.12, 0.13, 0.2, 0.5, 0.05)
    spans, at = [], 0.0
    for name, share in zip(("S1", "S2", "S3", "S4", "S5"), shares, strict=True):
        until = at + share * end.working_seconds
        spans.append(
            StageSpan(stage=name, start=at, end=until, turns=max(1, round(share * end.turns)), commands=1,
                      failed_commands=0, tokens_in=int(share * end.usage.input),
                      tokens_out=int(share * end.usage.output), seconds=until - at,
                      cost_usd=share * (end.cost_usd or 0.0))
        )  # fmt: skip
        at = until
    return tuple(spans)


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


_PLAN = (
    "# Plan for {task}\n\n1. Look at the inputs.\n2. Choose a method.\n3. One pilot case.\n4. All cases.\n"
)
_SAYS = (
    "First I look at what is in the data folder.",
    "Now I write down the plan.",
    "I set up what the method needs.",
    "One pilot case before the batch.",
    "I look at the pilot's output: shape, range, values.",
    "Now the batch.",
)
_FAILS = 'Traceback (most recent call last):\n  File "step.py", line 2\nValueError: shapes do not match\n'


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.made_runs", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--records-only", action="store_true")
    chosen = parser.parse_args()
    folders = write_results(chosen.out, repeats=chosen.repeats, files=not chosen.records_only)
    print(f"{len(folders)} runs in {chosen.out}")


if __name__ == "__main__":
    main()
