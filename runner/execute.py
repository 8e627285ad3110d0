"""One run, as data flowing one way: prepare, run the agent, collect, evaluate, judge, seal.

Each step writes its own file into the run folder and can be run again from the files before it, so that a killed
runner loses at most the step it was in, and ``regrade`` and ``rejudge`` never touch the agent.
"""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from evaluator.errors import detect_errors
from evaluator.files import sha256_file, write_atomic
from evaluator.judge.inputs import public_shapes
from evaluator.judge.judgement import Judgement
from evaluator.judge.material import Assignment, Material, material_of
from evaluator.judge.spans import StageSpan, stage_spans
from evaluator.report import TaskReport
from evaluator.rubric import load_rubric
from evaluator.submission import collect
from evaluator.trace import End, EndReason, TraceError, read_trace
from hf_datasets.records import RunRecord, dump_record, load_record
from runner import cell as files
from runner.agents import load_agent
from runner.agents.base import Agent
from runner.cell import Cell, CellFile, is_done, locked, require_room, set_aside
from runner.errors import EnvironmentProblem
from runner.evaluate import EvaluationFailed, evaluate
from runner.judges import Judge, RulesJudge, is_same_family, load_judge
from runner.limits import Budget
from runner.provenance import code_digest, hardware, harness_version
from runner.sandbox import BackendName, choose_backend
from runner.sandbox.base import AGENT_UID, Backend, Mount, Network, SandboxDead, SandboxSpec
from runner.seal import Sealed, assemble_record
from runner.session import Session, Watch
from runner.trace import TraceWriter
from tasks.brief import Brief, render
from tasks.manifest import MANIFEST_NAME, Manifest, ManifestError, load_manifest
from tasks.registry import load_task, task_digest
from tasks.schema import OUTPUT_ROOT, Limits, Release, Task


@dataclass(frozen=True)
class Options:
    """What holds for every cell of one invocation."""

    runs: Path
    data: Path
    sandbox: BackendName = "auto"
    network: Network = "none"
    limits: dict[str, float | int] | None = None
    agents_file: Path | None = None
    judge: str = "rules"
    judges_file: Path | None = None


@dataclass(frozen=True)
class Outcome:
    """``scored`` and ``already`` have a record; ``unscored`` says why there is none."""

    state: Literal["scored", "already", "unscored"]
    folder: Path
    record: RunRecord


def run_cell(cell: Cell, options: Options, watch: Watch | None = None) -> Outcome:
    """Run one cell to its end, or finish what an interrupted runner left of it.

    Raises
    ------
    UsageProblem
        Unknown names, or another process is running this cell.
    EnvironmentProblem
        No sandbox, no staged data, no key, no room on the disk.
    """
    folder = cell.folder(options.runs)
    with locked(folder):
        if is_done(folder):
            return Outcome("already", folder, load_record(folder / files.RECORD))
        judge = load_judge(options.judge, options.judges_file)
        backend = choose_backend(options.sandbox)
        backend.reap()
        if not agent_has_finished(folder):
            agent = load_agent(cell.agent, options.agents_file)
            prepared = prepare(cell, agent, options, backend)
            run_agent(prepared, agent, backend, watch)
        return finish(folder, options.data, backend, judge)


def agent_has_finished(folder: Path) -> bool:
    """Whether the trace holds an end that is the agent's own, so that only later steps are missing."""
    return (end := _end_of(folder)) is not None and end.reason.is_agents


def _end_of(folder: Path) -> End | None:
    path = folder / files.TRACE
    if not path.is_file() or not (folder / files.CELL).is_file():
        return None
    try:
        events = read_trace(path)
    except TraceError:
        return None
    return events[-1] if events and isinstance(events[-1], End) else None


@dataclass(frozen=True)
class Prepared:
    """Everything that is fixed before the agent starts."""

    folder: Path
    cell: CellFile
    task: Task
    manifest: Manifest
    data: Path
    brief: Brief


def prepare(cell: Cell, agent: Agent, options: Options, backend: Backend) -> Prepared:
    """Lay out a fresh run folder; what an earlier attempt left is kept beside it."""
    task = load_task(cell.task)
    limits = Limits.model_validate({**task.limits.model_dump(), **(options.limits or {})})
    data = staged_folder(options.data, cell.release, task)
    manifest = _load_manifest(data)
    brief = render(
        task,
        cell.tier,
        release=cell.release,
        n_cases=len(manifest.cases),
        limits=limits,
        network=options.network,
    )
    folder = cell.folder(options.runs)
    attempt = set_aside(folder)
    folder.mkdir(parents=True)
    require_room(folder)
    cell_file = CellFile(
        run_id=f"{cell.task}.{cell.tier.value}.{cell.agent}.r{cell.repeat:02d}-{uuid.uuid4().hex[:8]}",
        task=cell.task,
        tier=cell.tier,
        release=cell.release,
        agent=cell.agent,
        model=agent.model,
        repeat=cell.repeat,
        attempt=attempt,
        created_at=datetime.now(UTC),
        limits=limits,
        network=options.network,
        sandbox=backend.name,
        agent_environment=backend.environment_digest("agent"),
        harness_version=harness_version(),
        code_sha256=code_digest(),
        task_sha256=task_digest(cell.task),
        manifest_sha256=sha256_file(data / MANIFEST_NAME),
        brief_sha256=brief.sha256,
        n_cases=len(manifest.cases),
        price_source=agent.price_source,
        cpu_count=hardware().cpu_count,
        memory_mb=hardware().memory_mb,
        gpus=hardware().gpus,
    )
    _make_workspace(folder / files.WORKSPACE)
    write_atomic(folder / files.BRIEF, brief.text)
    write_atomic(folder / files.CELL, cell_file.model_dump_json(indent=1) + "\n")
    return Prepared(folder, cell_file, task, manifest, data, brief)


def staged_folder(data_root: Path, release: Release, task: Task) -> Path:
    """Where the task's staged data lie; phantoms are made on the spot, everything else must have been staged."""
    if release is Release.PHANTOM:
        from hf_datasets import ensure_phantom

        return ensure_phantom(task.id, data_root)
    return data_root / release.value / task.id


def _load_manifest(data: Path) -> Manifest:
    try:
        return load_manifest(data)
    except ManifestError as error:
        raise EnvironmentProblem(str(error)) from None


def _make_workspace(workspace: Path) -> None:
    """``outputs`` and a home, owned by the uid that the agent's code runs under."""
    for place in (workspace, workspace / OUTPUT_ROOT, workspace / "home"):
        place.mkdir(parents=True)
        if os.geteuid() == 0:
            os.chown(place, AGENT_UID, AGENT_UID)


def run_agent(prepared: Prepared, agent: Agent, backend: Backend, watch: Watch | None = None) -> None:
    """Let the agent work until the session ends; the trace then holds exactly one ``end``."""
    cell, limits = prepared.cell, prepared.cell.limits
    spec = SandboxSpec(
        role="agent",
        run_id=cell.run_id,
        mounts=(
            Mount(prepared.data / "public", "/data/public"),
            Mount(prepared.folder / files.WORKSPACE, "/workspace", writable=True),
        ),
        env={"HOME": "/workspace/home", "PYTHONUNBUFFERED": "1"},
        network="open" if cell.network == "open" else "none",
        memory_mb=limits.memory_mb,
        pids=limits.pids,
        cpus=limits.cpus,
        disk_mb=limits.disk_mb,
        # Provider waiting does not count as working time, so the lease leaves room for as much of it again.
        lease_seconds=2 * limits.wall_seconds + 600,
        gpus=cell.gpus,
    )
    with TraceWriter(prepared.folder / files.TRACE) as trace, backend.create(spec) as sandbox:
        session = Session(
            task=prepared.task,
            brief=prepared.brief,
            cell=cell,
            sandbox=sandbox,
            trace=trace,
            budget=Budget(limits),
            workspace=prepared.folder / files.WORKSPACE,
            case_ids=prepared.manifest.case_ids(),
            watch=watch,
        )
        try:
            agent.run(session)
        except SandboxDead as error:
            session.end(EndReason.INFRA_ERROR, str(error))
        if session.ended is None:
            session.end(EndReason.AGENT_STOP, "the agent returned without submitting")


def finish(folder: Path, data_root: Path, backend: Backend, judge: Judge) -> Outcome:
    """Collect, evaluate, judge and seal; steps whose file is there already are not repeated."""
    run = Run.load(folder, data_root)
    if not run.end.reason.is_agents:
        return _leave_unscored(run, run.end.detail)
    if not (folder / files.SUBMISSION / files.MANIFEST).is_file():
        run.collect()
    try:
        if not (folder / files.REPORT).is_file():
            run.evaluate(backend)
    except EvaluationFailed as error:
        return _leave_unscored(run, str(error))
    if not (folder / files.JUDGEMENT).is_file():
        run.judge(judge)
    return run.seal(backend.environment_digest("evaluator"))


def _leave_unscored(run: Run, detail: str) -> Outcome:
    record = assemble_record(run.sealed(None, None, ()), end_reason_detail=detail)
    write_atomic(run.folder / files.UNSCORED, dump_record(record))
    return Outcome("unscored", run.folder, record)


def regrade(folder: Path, data_root: Path, sandbox: BackendName) -> Outcome:
    """Evaluate the stored submission again (a corrected metric, say) and seal a record that supersedes the old one.

    The judgement stays.
    """
    with locked(folder):
        backend = choose_backend(sandbox)
        run = Run.load(folder, data_root)
        try:
            run.evaluate(backend)
        except EvaluationFailed as error:
            raise EnvironmentProblem(f"{folder}: {error}; the old report stays") from None
        if not (folder / files.JUDGEMENT).is_file():
            run.judge(RulesJudge())
        return run.seal(backend.environment_digest("evaluator"))


def rejudge(folder: Path, data_root: Path, judge: Judge) -> Outcome:
    """Judge the stored trace again and seal a record that supersedes the old one; agent and evaluator do not run.

    Where this judge has nothing left to decide, nothing is asked and nothing is written.
    """
    with locked(folder):
        if not is_done(folder):
            raise EnvironmentProblem(f"{folder}: the run is not done; run the cell again first")
        run = Run.load(folder, data_root)
        before = load_record(folder / files.RECORD)
        if not run.judge(judge) and before.judgement_sha256 == sha256_file(folder / files.JUDGEMENT):
            return Outcome("already", folder, before)
        return run.seal(before.evaluator_environment)


@dataclass(frozen=True)
class Run:
    """A run folder whose agent has ended, and the steps that follow from its files."""

    folder: Path
    cell: CellFile
    task: Task
    data: Path
    manifest: Manifest
    end: End

    @classmethod
    def load(cls, folder: Path, data_root: Path) -> Run:
        end = _end_of(folder)
        if end is None:
            raise EnvironmentProblem(f"{folder}: the agent's run has not ended; run the cell again first")
        cell = CellFile.model_validate_json((folder / files.CELL).read_bytes())
        task = load_task(cell.task)
        data = staged_folder(data_root, cell.release, task)
        if sha256_file(data / MANIFEST_NAME) != cell.manifest_sha256:
            raise EnvironmentProblem(
                f"{data} is not the data that {folder} was run on; give the right --data"
            )
        return cls(folder, cell, task, data, _load_manifest(data), end)

    def collect(self) -> None:
        """Copy what the agent left into ``submission``; the folder appears whole or not at all."""
        collect(
            self.folder / files.WORKSPACE, self.folder / files.SUBMISSION, self.task, self.manifest.case_ids()
        )

    def evaluate(self, backend: Backend) -> None:
        submission, scratch = self.folder / files.SUBMISSION, self.folder / files.EVALUATION
        evaluation = evaluate(
            backend, self.cell.run_id, self.task, self.manifest, self.data, submission, scratch
        )
        previews = self.folder / files.PREVIEWS
        previews.mkdir(exist_ok=True)
        for name, picture in evaluation.previews.items():
            write_atomic(previews / name, picture)
        self._replace(files.REPORT, evaluation.report_bytes)

    def judge(self, judge: Judge) -> bool:
        """Write ``judgement.json``; False when the judge has nothing to add to the one that is there."""
        path = self.folder / files.JUDGEMENT
        earlier = Judgement.model_validate_json(path.read_bytes()) if path.is_file() else None
        judgement = judge.judge(self.material(), load_rubric(self.task.track), self.cell.tier, earlier)
        if judgement is earlier:
            return False
        if judge.model is not None:
            judgement = judgement.model_copy(
                update={"same_family": is_same_family(judge.model, self.cell.model)}
            )
        self._replace(files.JUDGEMENT, judgement.model_dump_json(indent=1) + "\n")
        return True

    def material(self) -> Material:
        return material_of(
            Assignment.of(self.task, self.cell.tier, len(self.manifest.cases)),
            read_trace(self.folder / files.TRACE),
            self.folder / files.SUBMISSION,
            public_shapes(self.manifest),
            gpus=self.cell.gpus,
        )

    def seal(self, evaluator_environment: str | None) -> Outcome:
        """Write ``record.json``, last of all: its presence means that the run is done."""
        report = TaskReport.model_validate_json((self.folder / files.REPORT).read_bytes())
        judgement = Judgement.model_validate_json((self.folder / files.JUDGEMENT).read_bytes())
        material = self.material()
        codes = (*detect_errors(material.events, material.evidence, report), *judgement.tags)
        names = tuple(sorted({code.name for code in codes}))
        spans = stage_spans(material.events, material.evidence)
        record = assemble_record(self.sealed(report, judgement, names, evaluator_environment, spans))
        self._replace(files.RECORD, dump_record(record))
        (self.folder / files.UNSCORED).unlink(missing_ok=True)
        return Outcome("scored", self.folder, record)

    def sealed(
        self,
        report: TaskReport | None,
        judgement: Judgement | None,
        codes: tuple[str, ...],
        evaluator_environment: str | None = None,
        spans: tuple[StageSpan, ...] = (),
    ) -> Sealed:
        return Sealed(
            self.folder,
            self.cell,
            self.task,
            self.end,
            report,
            judgement,
            codes,
            evaluator_environment,
            spans,
        )

    def _replace(self, name: str, data: str | bytes) -> None:
        """Put a new version of a step's file in place; the version before it is kept in ``superseded``."""
        path = self.folder / name
        if path.is_file():
            kept = self.folder / "superseded"
            kept.mkdir(exist_ok=True)
            write_atomic(kept / f"{path.stem}-{sha256_file(path)[:12]}{path.suffix}", path.read_bytes())
        write_atomic(path, data)
