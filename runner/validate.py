"""Validate tasks: every check of a task in one process, tasks side by side, a line for each as it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from pydantic import ValidationError

from runner.sandbox.base import Backend
from tasks.schema import Strict

SECONDS = 600
"""A task that takes longer to validate than this is at fault."""


class Finding(Strict):
    """How one check ended. ``skipped``: a check before it failed, or it was left out."""

    check: str
    state: Literal["ok", "failed", "skipped"]
    problems: tuple[str, ...] = ()


class Verdict(Strict):
    """All checks of one task."""

    task: str
    seconds: float
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return all(finding.state != "failed" for finding in self.findings)

    def row(self) -> dict[str, Any]:
        """One row of a table: the task, its seconds and every check's state."""
        return {"task": self.task, "s": self.seconds} | {
            finding.check: finding.state for finding in self.findings
        }

    def lines(self) -> Iterator[str]:
        """What is wrong, one line a problem."""
        for finding in self.findings:
            for problem in finding.problems:
                yield f"{finding.check}: {problem}"


def validate(task_id: str, backend: Backend | None, online: bool = False) -> Verdict:
    """Make every check of one task.

    Parameters
    ----------
    backend : Backend or None
        The sandbox for the snippets; None leaves them out.
    online : bool
        Whether requirements are resolved against the package index.

    Raises
    ------
    TaskError
        There is no such task.
    SandboxDead
        The sandbox ended on its own.
    """
    from runner.task_checks import CHECKS, NEEDS, Subject
    from tasks.registry import TaskError, load_folder, task_folder

    started, folder = time.monotonic(), task_folder(task_id)
    findings: dict[str, Finding] = {}
    try:
        task = load_folder(folder)
    except TaskError as error:
        findings["schema"] = Finding(check="schema", state="failed", problems=(str(error),))
        findings |= {name: Finding(check=name, state="skipped") for name in CHECKS}
        return _verdict(task_id, started, findings)
    findings["schema"] = Finding(check="schema", state="ok")
    with TemporaryDirectory(prefix="validate-") as room:
        Path(room).chmod(0o755)
        subject = Subject(task, folder, Path(room), backend, online)
        for name, check in CHECKS.items():
            left_out = name == "snippets" and backend is None
            needed = findings.get(NEEDS.get(name, ""))
            if left_out or (needed is not None and needed.state != "ok"):
                findings[name] = Finding(check=name, state="skipped")
            else:
                findings[name] = made(name, lambda check=check: check(subject))  # type: ignore[misc]
    return _verdict(task_id, started, findings)


def made(name: str, check: Callable[[], Iterator[str]]) -> Finding:
    """How one check ends; what its subject can cause is a problem, not a crash."""
    from evaluator.tracks.base import ReferenceMissing
    from hf_datasets.families import UnknownTask
    from hf_datasets.phantoms import PhantomError
    from hf_datasets.staging import StagingError
    from tasks.brief import BriefError

    try:
        problems = tuple(check())
    except (UnknownTask, PhantomError, StagingError, BriefError, ReferenceMissing) as error:
        problems = (str(error),)
    return Finding(check=name, state="failed" if problems else "ok", problems=problems)


def _verdict(task_id: str, started: float, findings: dict[str, Finding]) -> Verdict:
    return Verdict(
        task=task_id, seconds=round(time.monotonic() - started, 2), findings=tuple(findings.values())
    )


def validate_all(
    task_ids: Sequence[str], jobs: int | None, options: Sequence[str], say: Callable[[str], None]
) -> list[Verdict]:
    """Validate many tasks, each in a process of its own, so that one that crashes fails alone.

    Parameters
    ----------
    jobs : int or None
        Tasks at a time; as many as there are processors by default.
    options
        Passed on to the command of each task.
    say
        Called with a line whenever a task is done.
    """
    done: dict[str, Verdict] = {}
    with ThreadPoolExecutor(jobs or len(os.sched_getaffinity(0))) as pool:
        running = [pool.submit(_in_own_process, task_id, options) for task_id in task_ids]
        for number, future in enumerate(as_completed(running), start=1):
            verdict = future.result()
            done[verdict.task] = verdict
            state = "ok" if verdict.ok else "not valid"
            say(f"[{number}/{len(task_ids)}] {verdict.task}: {state} ({verdict.seconds:.1f} s)")
            for line in verdict.lines():
                say(f"    {line}")
    return [done[task_id] for task_id in task_ids]


def _in_own_process(task_id: str, options: Sequence[str]) -> Verdict:
    started = time.monotonic()
    command = [sys.executable, "-m", "runner", "validate", task_id, "--json", *options]
    environment = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"} | dict(os.environ)
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment)
        return Verdict.model_validate(json.loads(run.stdout)[0])
    except subprocess.TimeoutExpired:
        trouble = f"no end after {SECONDS} s"
    except (ValueError, LookupError, TypeError, ValidationError):
        lines = run.stderr.strip().splitlines()
        trouble = f"the check itself broke: {lines[-1] if lines else f'exit code {run.returncode}'}"
    return _verdict(task_id, started, {"run": Finding(check="run", state="failed", problems=(trouble,))})
