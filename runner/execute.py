"""One run, as data flowing one way: prepare, run the agent, collect, evaluate, judge, seal.

Each step writes its own file into the run folder and can be run again from the files before it, so that a killed
runner loses at most the step it was in, and ``regrade`` and ``rejudge`` never touch the agent.
"""

from __future__ import annotations

import os
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from evaluator.files import sha256_file, write_atomic
from evaluator.trace import EndReason, TraceError
from hf_datasets.records import dump_record, load_record
from hf_datasets.release_download import revision_of
from runner import cell as files
from runner.agents import load_agent, require_agent
from runner.agents.base import Agent
from runner.agents.profiles import EndpointProfile, Profile
from runner.cell import (
    Cell,
    CellFile,
    is_done,
    locked,
    read_form,
    remove_halves,
    require_readable,
    require_room,
    set_aside,
)
from runner.egress import Opening, egress, require_egress
from runner.ended import Outcome, Run, end_of, staged_folder, staged_manifest
from runner.errors import EnvironmentProblem, UsageProblem
from runner.evaluate import EvaluationFailed
from runner.judges import Judge, RulesJudge, load_judge
from runner.limits import Budget
from runner.policy import PolicyWatch, policy_watch
from runner.provenance import code_digest, gpus, hardware, harness_version
from runner.sandbox import BackendName, choose_backend
from runner.sandbox.base import AGENT_UID, Backend, Mount, SandboxDead, SandboxSpec
from runner.scratch import reap_scratch
from runner.seal import assemble_record
from runner.session import Session, Watch
from runner.trace import TraceWriter
from tasks.brief import Brief, render
from tasks.manifest import MANIFEST_NAME, Manifest
from tasks.names import Network
from tasks.registry import load_task, task_digest
from tasks.schema import OUTPUT_ROOT, Limits, Task


@dataclass(frozen=True)
class Options:
    """What holds for every cell of one invocation."""

    runs: Path
    data: Path
    sandbox: BackendName = "auto"
    network: Network = "allowlist"
    limits: dict[str, float | int] | None = None
    agents_file: Path | None = None
    judge: str = "rules"
    judges_file: Path | None = None
    gpus: tuple[str, ...] | None = None
    """Device ids that the agent gets; None: all that there are."""
    watch_training: bool = False


def run_cell(cell: Cell, options: Options, watch: Watch | None = None) -> Outcome:
    """Run one cell to its end, or finish what an interrupted runner left of it.

    Raises
    ------
    UsageProblem
        Unknown names, or another process is running this cell.
    EnvironmentProblem
        No sandbox, no staged data, no key, no room on the disk.
    """
    profile = require_agent(cell.agent, options.agents_file)
    limits = effective_limits(load_task(cell.task), options)
    folder = cell.folder(options.runs)
    with locked(folder):
        remove_halves(folder)
        done = is_done(folder)
        finished = done or agent_has_finished(folder)
        if finished:
            _require_same_request(folder, cell, options, limits, profile)
        if done:
            return Outcome("already", folder, load_record(folder / files.RECORD))
        judge = load_judge(options.judge, options.judges_file)
        backend = choose_backend(options.sandbox)
        backend.reap()
        reap_scratch()
        if not finished:
            agent = load_agent(cell.agent, options.agents_file)
            prepared = prepare(cell, agent, options, backend, limits)
            run_agent(prepared, agent, backend, watch)
        return finish(folder, options.data, backend, judge)


def agent_has_finished(folder: Path) -> bool:
    """Whether the trace holds an end that is the agent's own, so that only later steps are missing."""
    try:
        return (end := end_of(folder)) is not None and end.reason.is_agents
    except TraceError:
        return False


def _require_same_request(
    folder: Path, cell: Cell, options: Options, limits: Limits, profile: Profile
) -> None:
    """What lies in the folder may only stand for what is asked now if it was asked in the same way."""
    ran = read_form(folder / files.CELL, CellFile)
    names = ("task", "tier", "release", "agent", "repeat")
    pairs = {name: (getattr(ran, name), getattr(cell, name)) for name in names}
    pairs["network"] = (ran.network, options.network)
    pairs["watch_training"] = (ran.watch_training, options.watch_training)
    if isinstance(profile, EndpointProfile):
        pairs["model"] = (ran.model, profile.model)
    pairs |= {name: (getattr(ran.limits, name), value) for name, value in limits.model_dump().items()}
    different = [f"{name} {had} (asked for: {asked})" for name, (had, asked) in pairs.items() if had != asked]
    if different:
        raise UsageProblem(
            f"{folder} holds a run with {', '.join(different)}; choose another --repeat or --runs-dir"
        )


def effective_limits(task: Task, options: Options) -> Limits:
    """The task's limits with those that were asked for in their place."""
    try:
        return Limits.model_validate({**task.limits.model_dump(), **(options.limits or {})})
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageProblem(f"limit {first['loc'][0]}: {first['msg']}") from None


@dataclass(frozen=True)
class Prepared:
    """Everything that is fixed before the agent starts."""

    folder: Path
    cell: CellFile
    task: Task
    manifest: Manifest
    data: Path
    brief: Brief


def prepare(cell: Cell, agent: Agent, options: Options, backend: Backend, limits: Limits) -> Prepared:
    """Lay out a fresh run folder; what an earlier attempt left is kept beside it."""
    task = load_task(cell.task)
    data = staged_folder(options.data, cell.release, task)
    manifest = staged_manifest(data)
    brief = render(
        task,
        cell.tier,
        release=cell.release,
        n_cases=len(manifest.cases),
        limits=limits,
        network=options.network,
    )
    devices = [gpu for gpu in gpus() if options.gpus is None or gpu.uuid in options.gpus]
    folder = cell.folder(options.runs)
    require_egress(options.network)
    require_readable(data)
    require_room(folder.parent)
    attempt = set_aside(folder)
    folder.mkdir(parents=True)
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
        watch_training=options.watch_training,
        sandbox=backend.name,
        agent_environment=backend.environment_digest("agent"),
        harness_version=harness_version(),
        code_sha256=code_digest(),
        task_sha256=task_digest(cell.task),
        manifest_sha256=sha256_file(data / MANIFEST_NAME),
        brief_sha256=brief.sha256,
        n_cases=len(manifest.cases),
        price_source=agent.price_source,
        data_revision=revision_of(data),
        cpu_count=hardware().cpu_count,
        memory_mb=hardware().memory_mb,
        gpus=tuple(gpu.name for gpu in devices),
        gpu_devices=tuple(gpu.uuid for gpu in devices),
    )
    _make_workspace(folder / files.WORKSPACE)
    write_atomic(folder / files.BRIEF, brief.text)
    write_atomic(folder / files.CELL, cell_file.model_dump_json(indent=1) + "\n")
    return Prepared(folder, cell_file, task, manifest, data, brief)


def _make_workspace(workspace: Path) -> None:
    """``outputs`` and a home, owned by the uid that the agent's code runs under."""
    for place in (workspace, workspace / OUTPUT_ROOT, workspace / "home"):
        place.mkdir(parents=True)
        if os.geteuid() == 0:
            os.chown(place, AGENT_UID, AGENT_UID)


def run_agent(prepared: Prepared, agent: Agent, backend: Backend, watch: Watch | None = None) -> None:
    """Let the agent work until the session ends; the trace then holds exactly one ``end``."""
    cell = prepared.cell
    ended: EndReason | None = None
    try:
        with ExitStack() as stack:
            # In this order: the way out closes, and its log is complete, when nothing is left that could use it.
            opening = stack.enter_context(
                egress(cell.network, prepared.task, prepared.folder / files.DOWNLOADS)
            )
            policy = stack.enter_context(policy_watch(cell.watch_training, cell.gpu_devices))
            trace = stack.enter_context(TraceWriter(prepared.folder / files.TRACE))
            sandbox = stack.enter_context(backend.create(_agent_spec(prepared, opening, policy)))
            session = Session(
                task=prepared.task,
                brief=prepared.brief,
                cell=cell,
                sandbox=sandbox,
                trace=trace,
                budget=Budget(cell.limits),
                workspace=prepared.folder / files.WORKSPACE,
                case_ids=prepared.manifest.case_ids(),
                watch=watch,
                before_call=opening.before_call,
                policy=policy,
            )
            try:
                agent.run(session)
            except SandboxDead as error:
                session.end(EndReason.INFRA_ERROR, str(error))
            if session.ended is None:
                session.end(EndReason.AGENT_STOP, "the agent returned without submitting")
            ended = session.ended
    except SandboxDead:
        # It was not seen to end. Where it died under the agent, the trace says so already; anything else must wait
        # until the next run has removed it, because references are only mounted after that.
        if ended is not EndReason.INFRA_ERROR:
            raise


def _agent_spec(prepared: Prepared, opening: Opening, policy: PolicyWatch | None) -> SandboxSpec:
    cell, limits = prepared.cell, prepared.cell.limits
    return SandboxSpec(
        role="agent",
        run_id=cell.run_id,
        mounts=(
            Mount(prepared.data / "public", "/data/public"),
            Mount(prepared.folder / files.WORKSPACE, "/workspace", writable=True),
            *opening.mounts,
            *(policy.mounts if policy else ()),
        ),
        env={
            "HOME": "/workspace/home",
            "PYTHONUNBUFFERED": "1",
            **opening.env,
            **(policy.env if policy else {}),
        },
        network="open" if cell.network == "open" else "none",
        memory_mb=limits.memory_mb,
        pids=limits.pids,
        cpus=limits.cpus,
        disk_mb=limits.disk_mb,
        # Provider waiting does not count as working time, so the lease leaves room for as much of it again.
        lease_seconds=2 * limits.wall_seconds + 600,
        gpus=cell.gpu_devices,
    )


def finish(folder: Path, data_root: Path, backend: Backend, judge: Judge) -> Outcome:
    """Collect, evaluate, judge and seal.

    A submission that was collected already stays. A report that an interrupted runner left is made again, because it
    may be another evaluator's; an LLM judge keeps what it has judged of the same evidence.
    """
    run = Run.load(folder, data_root)
    if not run.end.reason.is_agents:
        return _leave_unscored(run, run.end.detail)
    run.require_same_task()
    run.collect()
    try:
        run.evaluate(backend)
    except EvaluationFailed as error:
        return _leave_unscored(run, str(error))
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
        if not run.end.reason.is_agents or not (folder / files.SUBMISSION / files.MANIFEST).is_file():
            raise EnvironmentProblem(f"{folder} holds no submission to grade; run the cell again")
        run.require_as_collected()
        run.require_as_sealed(files.JUDGEMENT)
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
        run.require_as_collected(outputs=False)
        run.require_as_sealed(files.REPORT, files.JUDGEMENT)
        before = load_record(folder / files.RECORD)
        if not run.judge(judge) and before.judgement_sha256 == sha256_file(folder / files.JUDGEMENT):
            return Outcome("already", folder, before)
        return run.seal(before.evaluator_environment)
