"""What lies beside a record, read when it is asked for; a missing or damaged part is a sentence that says why."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from evaluator.judge.judgement import Judgement
from evaluator.report import TaskReport
from evaluator.untrusted import MEGABYTE, Refused, read_bytes
from hf_datasets.records import RunRecord
from space.snapshot import RunDetail
from tasks.names import Redistribution, Release
from tasks.registry import TaskError, load_task
from tasks.schema import Task, first_problem

MAX_BYTES = 64 * MEGABYTE

Form = TypeVar("Form", bound=BaseModel)


@dataclass(frozen=True)
class Part(Generic[Form]):
    """A file of the run in its form, or why there is none."""

    value: Form | None
    missing: str = ""


def report_of(run: RunDetail) -> Part[TaskReport]:
    return _part(run, "report.json", TaskReport, _no_report(run.record))


def judgement_of(run: RunDetail) -> Part[Judgement]:
    return _part(run, "judgement.json", Judgement, _no_judgement(run.record))


def task_of(record: RunRecord) -> Task | None:
    """The run's task; None where this version of the project does not know it."""
    try:
        return load_task(record.task)
    except TaskError:
        return None


def why_missing(run: RunDetail, what: str) -> str:
    """Why these results hold no ``what`` of the run, as far as the terms of its data tell."""
    record, task = run.record, task_of(run.record)
    if run.folder is None:
        return f"These results hold the run's record alone, without its {what}."
    terms = task.source.redistribution if task else Redistribution.NONE
    if record.release is Release.PHANTOM or terms is Redistribution.ALLOWED:
        return f"The run folder holds no {what}."
    left = "scores alone" if terms is Redistribution.NONE else "what derives from the agent's work alone"
    return (
        f"The run folder holds no {what}. The terms of the data set (redistribution: {terms.value}) let {left} "
        "leave the machine on which the run was made."
    )


def _no_report(record: RunRecord) -> str:
    if record.report_sha256 is None:
        return f"The run was not scored: it ended with {record.end_reason.value}, and there is no report."
    return ""


def _no_judgement(record: RunRecord) -> str:
    if record.judge is None:
        return (
            "No judge has scored how the work was done: S1 to S3, AGENTIC and OVERALL are missing, not zero."
        )
    return ""


def _part(run: RunDetail, name: str, form: type[Form], missing: str) -> Part[Form]:
    path = run.file(name)
    if path is None:
        return Part(None, missing or why_missing(run, name))
    try:
        info = path.stat()
        return Part(_read(path, form, info.st_mtime_ns, info.st_size))
    except (Refused, OSError) as error:
        return Part(None, f"{name} cannot be read: {error}")
    except ValidationError as error:
        return Part(None, f"{name} is damaged or of another version: {first_problem(error)}")


@lru_cache(maxsize=64)
def _read(path: Path, form: type[Form], changed: int, size: int) -> Form:  # noqa: ARG001 - parts of the key
    return form.model_validate_json(read_bytes(path, MAX_BYTES))
