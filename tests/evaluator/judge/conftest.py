"""Synthetic runs: a trace as the runner writes it, and the plan's collected files."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from PIL import Image

from evaluator.errors import FiredCode, detect_errors
from evaluator.judge.evidence import Evidence, collect_evidence
from evaluator.judge.judgement import Judgement
from evaluator.judge.rules import judge_by_rules
from evaluator.report import CaseError, CaseResult, TaskReport
from evaluator.rubric import load_rubric
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
    read_trace,
)
from tasks import load_task
from tasks.schema import Task, Tier, Track

CASES = tuple(f"case-{number:02d}" for number in range(10))
SHAPE = (48, 64, 20)
PLAN = "# Plan\n" + "Read each scan, segment it, write the mask, check shape and labels.\n" * 4


def png(width: int = 200, height: int = 120, *, plain: bool = False) -> bytes:
    image = Image.new("RGB", (width, height), "white")
    if not plain:
        image.putpixel((3, 3), (0, 0, 0))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


@dataclass
class Run:
    """A run in the making. Every call of the agent has a turn of its own unless it says ``same_turn``."""

    folder: Path
    task: Task
    cases: tuple[str, ...] = CASES
    tier: Tier = Tier.STANDARD
    events: list[Event] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    turn: int = 0
    calls: int = 0

    def call(
        self,
        code: str = "print('hello')",
        output: str = "done\n",
        *,
        exit_code: int | None = 0,
        writes: dict[str, int] | None = None,
        completes: tuple[str, ...] = (),
        reads: tuple[str, ...] = (),
        deletes: tuple[str, ...] = (),
        same_turn: bool = False,
        **exec_fields: bool,
    ) -> Run:
        self.calls += 1
        name = f"call-{self.calls}"
        if same_turn:
            reply = next(event for event in reversed(self.events) if isinstance(event, Reply))
            index = self.events.index(reply)
            more = (*reply.calls, self._tool_call(name, code))
            self.events[index] = reply.model_copy(update={"calls": more})
        else:
            self.turn += 1
            self.events.append(Reply(turn=self.turn, calls=(self._tool_call(name, code),)))
        self.events.append(
            Exec(
                turn=self.turn,
                call=name,
                language="python",
                exit_code=exit_code,
                seconds=1.0,
                output=output,
                output_bytes=len(output.encode()),
                **exec_fields,
            )
        )
        self.done = [case for case in (*self.done, *completes) if case not in deletes]
        outputs = {f"outputs/{case}/{file}": 900 for case in completes for file in self.task.output.filenames}
        changes = [
            FileChange(path=path, size=size, change="created")
            for path, size in {**(writes or {}), **outputs}.items()
        ]
        self.events.append(
            Files(
                turn=self.turn,
                call=name,
                changes=tuple(changes[:40]),
                more=max(0, len(changes) - 40),
                new_cases=completes[:20],
                new_cases_total=len(completes),
                read_cases=reads,
                complete_cases=len(self.done),
            )
        )
        return self

    @staticmethod
    def _tool_call(name: str, code: str) -> Call:
        return Call(id=name, name="execute_code", arguments=json.dumps({"language": "python", "code": code}))

    def plan(self, text: str | bytes = PLAN) -> Run:
        data = text.encode() if isinstance(text, str) else text
        self._process("plan.md").write_bytes(data)
        return self.call("open('plan.md', 'w').write(PLAN)", writes={"plan.md": len(data)})

    def picture(self, data: bytes | None = None) -> Run:
        data = png() if data is None else data
        self._process("plan.png").write_bytes(data)
        return self.call("draw('plan.png')", writes={"plan.png": len(data)})

    def _process(self, name: str) -> Path:
        folder = self.folder / "process"
        folder.mkdir(exist_ok=True)
        return folder / name

    def check_setup(self) -> Run:
        return self.call("print(nibabel.load(first).shape)", f"numpy 2.0\nshape {SHAPE}\n")

    def pilot(self, case: str = CASES[0]) -> Run:
        return self.call(f"predict({case!r})", completes=(case,))

    def inspect(self, case: str = CASES[0], output: str = "labels [0 1], 4211 voxels\n") -> Run:
        return self.call(f"inspect({case!r})", output, reads=(case,))

    def batch(self, cases: tuple[str, ...] | None = None) -> Run:
        left = tuple(case for case in (cases or self.cases) if case not in self.done)
        return self.call("predict_all()", completes=left)

    def submit(self) -> Run:
        missing = len(self.cases) - len(self.done)
        accepted = missing == 0 or any(isinstance(event, Submit) for event in self.events)
        self.turn += 1
        self.events.append(
            Submit(turn=self.turn, call="s", summary="", missing_total=missing, accepted=accepted)
        )
        return self.end(EndReason.SUBMITTED) if accepted else self

    def end(self, reason: EndReason) -> Run:
        self.events.append(End(reason=reason, turns=self.turn))
        return self

    def good(self) -> Run:
        """Everything a careful agent does."""
        return self.plan().picture().check_setup().pilot().inspect().batch().submit()

    # --- what the host makes of it ---

    def trace(self) -> Path:
        path = self.folder / "trace.jsonl"
        start = RunStarted(
            at="2026-01-01T00:00:00.000000+00:00",
            task=self.task.id,
            tier=self.tier.value,
            release="phantom",
            agent="somebody",
            brief_sha256="0" * 64,
            cases=len(self.cases),
        )
        lines = [
            event.model_copy(update={"seq": number, "t": float(number)}).model_dump_json()
            for number, event in enumerate([start, *self.events])
        ]
        path.write_text("".join(line + "\n" for line in lines))
        return path

    def evidence(self, shapes: tuple[tuple[int, ...], ...] = (SHAPE,)) -> Evidence:
        return collect_evidence(self.trace(), self.folder / "process", self.task, self.cases, shapes)

    def judge(self, tier: Tier = Tier.STANDARD, track: Track | None = None) -> Judgement:
        return judge_by_rules(self.evidence(), load_rubric(track or self.task.track), tier)

    def values(self, tier: Tier = Tier.STANDARD) -> dict[str, float | None]:
        return {item.id: item.value for item in self.judge(tier).items}

    def report(
        self,
        invalid: tuple[str, ...] = (),
        flags: dict[str, tuple[str, ...]] | None = None,
        score: float = 0.8,
    ) -> TaskReport:
        return make_report(self, invalid, flags or {}, score)

    def codes(self, report: TaskReport | None = None) -> tuple[FiredCode, ...]:
        return detect_errors(read_trace(self.trace()), self.evidence(), report or self.report())

    def subtypes(self, report: TaskReport | None = None) -> set[str]:
        return {f"{fired.code}.{fired.subtype}" for fired in self.codes(report)}


def make_report(
    run: Run, invalid: tuple[str, ...], flags: dict[str, tuple[str, ...]], score: float
) -> TaskReport:
    cases = []
    for case in run.cases:
        if case not in run.done:
            error = CaseError(code="missing", message="no such file")
            cases.append(CaseResult(case_id=case, status="missing", score=0, error=error))
        elif case in invalid:
            error = CaseError(code="wrong_shape", message="found (3, 3), expected (4, 4)")
            cases.append(CaseResult(case_id=case, status="invalid", score=0, error=error))
        else:
            cases.append(CaseResult(case_id=case, status="scored", score=score, flags=flags.get(case, ())))
    scored = sum(case.status == "scored" for case in cases)
    return TaskReport(
        task=run.task.id,
        track=run.task.track,
        release="phantom",
        metric=run.task.metric.headline,
        metric_set="default",
        task_score=score if scored == len(cases) else 0,
        task_score_ungated=score * scored / len(cases),
        n_cases=len(cases),
        n_scored=scored,
        completion=scored / len(cases),
        all_valid=scored == len(cases),
        format_valid=bool(run.done) and not invalid,
        cases=tuple(cases),
        manifest_sha256="0" * 64,
    )


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path, load_task("kidney-seg-task"))


@pytest.fixture
def picture():
    """Makes a PNG: ``picture(width, height, plain=True)``."""
    return png
