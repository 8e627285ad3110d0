"""One attempt at one cell, from a job to how it ended: a pure function of plain data, for any engine."""

from __future__ import annotations

import errno
import platform
import time
import traceback
from dataclasses import dataclass, replace

from evaluator.files import sha256_file
from evaluator.trace import ProviderError, TraceError, read_trace
from hf_datasets.failures import Cause, cause_of
from hf_datasets.records import RunRecord
from runner import cell as files
from runner.agents.gate import BudgetSpent
from runner.cell import is_done, locked, set_aside
from runner.ended import Outcome
from runner.errors import Busy, NoRoom, Problem, words_of
from runner.execute import regrade, rejudge, run_cell
from runner.judges import load_judge
from runner.sandbox import SandboxUnavailable, choose_backend
from runner.sandbox.base import SandboxDead
from runner.stop import Stopped
from runner.sweep.engine import AttemptEnd, Job
from runner.sweep.freeze import Freezer
from runner.sweep.inputs import Inputs
from runner.sweep.line import Teller, serving
from runner.sweep.requests import spend_of

DETAIL = 500
REFUSED = (401, 402, 403)


class InputsChanged(Exception):
    """What this machine has is not what was locked."""


def run_job(job: Job) -> AttemptEnd:
    """Do one attempt and say how it ended; nothing that can happen to a run is raised.

    Raises
    ------
    Stopped
        The process was asked to end; the run folder is whole.
    """
    started = time.monotonic()
    folder = job.cell.folder(job.options.runs)
    with serving(job, folder) as teller:
        try:
            end = _end_of(job, _do(job, teller))
        except Stopped:
            raise
        except Exception as error:
            end = _failed(job, error)
    return replace(
        end,
        spend=spend_of(folder, job.id),
        seconds=round(time.monotonic() - started, 3),
        own_seconds=round(teller.seconds, 3),
        host=platform.node(),
    )


def interrupted(job: Job, words: str, cause: Cause = Cause.INTERRUPTED) -> AttemptEnd:
    """The end of an attempt whose process did not live to report it."""
    folder = job.cell.folder(job.options.runs)
    return AttemptEnd(
        job.key, job.attempt, cause, words, spend=spend_of(folder, job.id), host=platform.node()
    )


# --- the steps ---


def _do(job: Job, teller: Teller) -> Outcome:
    _require_locked_inputs(job)
    folder, options = job.cell.folder(job.options.runs), job.options
    outcome = None
    for step in job.steps:
        if step == "run":
            if is_done(folder):
                with locked(folder):  # of other inputs: kept beside the new one
                    set_aside(folder)
            outcome = run_cell(job.cell, options, teller)
        elif step == "regrade":
            outcome = regrade(folder, options.data, options.sandbox)
        else:
            outcome = rejudge(folder, options.data, load_judge(options.judge, options.judges_file))
    assert outcome is not None
    if outcome.state != "unscored":
        require_record_of(job.inputs, outcome.record)
    return outcome


@dataclass
class _Memory:
    """The freezer of this process, for as long as it serves one sweep."""

    key: str = ""
    freezer: Freezer | None = None
    checked: frozenset[str] = frozenset()


_memory = _Memory()


def _require_locked_inputs(job: Job) -> None:
    """Compare what this machine has with what was locked; once a process for each kind of cell."""
    options = replace(job.options, gpus=None)
    key = repr((options, job.cell.release, job.needs.gpus))
    if _memory.key != key or _memory.freezer is None:
        _memory.key, _memory.freezer = key, Freezer(options, job.cell.release, job.needs.gpus)
        _memory.checked = frozenset()
    kind = f"{job.cell.task} {job.cell.tier} {job.cell.agent} {job.inputs}"
    if kind in _memory.checked:
        return
    if changed := _memory.freezer.inputs(job.cell).changed(job.inputs):
        raise InputsChanged(f"{', '.join(changed)}: not as locked")
    _memory.checked |= {kind}


def require_record_of(inputs: Inputs, record: RunRecord) -> None:
    """What was sealed must have been made of what was locked, whatever changed while it ran.

    Raises
    ------
    InputsChanged
        Names the digests that differ.
    """
    pairs = {
        "task_sha256": (record.task_sha256, inputs.task_sha256),
        "manifest_sha256": (record.manifest_sha256, inputs.manifest_sha256),
        "brief_sha256": (record.brief_sha256, inputs.brief_sha256),
        "agent_environment": (record.agent_environment, inputs.agent_environment),
        "evaluator_environment": (record.evaluator_environment, inputs.evaluator_environment),
    }
    if changed := [name for name, (had, locked_) in pairs.items() if had != locked_]:
        raise InputsChanged(f"{', '.join(changed)}: the sealed record's are not the locked ones")


# --- ends ---


def _end_of(job: Job, outcome: Outcome) -> AttemptEnd:
    record, folder = outcome.record, outcome.folder
    cause = cause_of(record)
    if outcome.state == "unscored":
        cause = _closer_look(job, cause)
    sealed = is_done(folder) and outcome.state != "unscored"
    return AttemptEnd(
        key=job.key,
        attempt=job.attempt,
        cause=cause,
        detail=record.end_detail[:DETAIL],
        run_id=record.run_id,
        record_sha256=sha256_file(folder / files.RECORD) if sealed else None,
    )


def _closer_look(job: Job, cause: Cause) -> Cause:
    """The same words in a record can stand for an engine that went away, or a provider that will never answer."""
    if cause in (Cause.INFRA_ERROR, Cause.EVALUATOR_FAILED) and not _engine_answers(job):
        return Cause.ENGINE_GONE
    if cause is Cause.PROVIDER_ERROR:
        try:
            events = read_trace(job.cell.folder(job.options.runs) / files.TRACE)
        except (OSError, TraceError):
            return cause
        errors = [event.status for event in events if isinstance(event, ProviderError)]
        if errors and errors[-1] in REFUSED:
            return Cause.PROVIDER_REFUSED
    return cause


def _engine_answers(job: Job) -> bool:
    try:
        choose_backend(job.options.sandbox)
    except SandboxUnavailable:
        return False
    return True


def _failed(job: Job, error: Exception) -> AttemptEnd:
    cause = _cause_of_error(job, error)
    words = words_of(error)
    if cause is Cause.FAULT:
        last = traceback.extract_tb(error.__traceback__)[-1]
        words = f"{type(error).__name__}: {words} ({last.filename}:{last.lineno})"
    return AttemptEnd(job.key, job.attempt, cause, words[:DETAIL])


def _cause_of_error(job: Job, error: Exception) -> Cause:
    if isinstance(error, BudgetSpent):
        return Cause.BUDGET
    if isinstance(error, InputsChanged):
        return Cause.CHANGED_INPUTS
    if isinstance(error, NoRoom) or (
        isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    ):
        return Cause.DISK_FULL
    if isinstance(error, SandboxUnavailable | SandboxDead):
        return Cause.INFRA_ERROR if _engine_answers(job) else Cause.ENGINE_GONE
    if isinstance(error, Busy | OSError):
        return Cause.INFRA_ERROR
    from hf_datasets.staging import StagingError
    from tasks.registry import TaskError

    return Cause.NOT_READY if isinstance(error, Problem | TaskError | StagingError) else Cause.FAULT
