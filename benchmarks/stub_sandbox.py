"""A sandbox that isolates nothing and does nothing, for measuring what a run costs beside its agent and its evaluator.

Only benchmarks can reach it. The evaluator's answer is made once for each task, by the real one, and given again.
"""

from __future__ import annotations

from pathlib import Path

import runner.evaluate
import runner.execute
import runner.sweep.freeze
import runner.sweep.jobs
from evaluator.files import sha256_file
from evaluator.report import dump_report
from evaluator.score import score
from runner.sandbox.base import Availability, ExecResult, SandboxSpec
from runner.sweep.engine import AttemptEnd, Job
from runner.sweep.jobs import run_job
from tasks.manifest import load_manifest
from tasks.registry import load_task

_reports: dict[str, bytes] = {}


class StubBackend:
    """See the module."""

    name = "bubblewrap"

    def available(self) -> Availability:
        return Availability(True, "a stub")

    def protections(self) -> tuple[()]:
        return ()

    def create(self, spec: SandboxSpec) -> StubSandbox:
        return StubSandbox(spec)

    def environment_digest(self, role: str) -> str:
        return f"stub-{role}"

    def reap(self) -> list[str]:
        return []


class StubSandbox:
    def __init__(self, spec: SandboxSpec) -> None:
        self.spec = spec

    def start(self) -> None:
        pass

    def exec(self, argv, **_options: object) -> ExecResult:
        if self.spec.role == "evaluator":
            self._grade(argv[argv.index("--task") + 1])
        return ExecResult(0, b"", 0, 0, 0.0)

    def _grade(self, task_id: str) -> None:
        places = {mount.target: mount.source for mount in self.spec.mounts}
        if task_id not in _reports:
            data = Path(places["/data/private"]).parent
            report = score(
                load_task(task_id), places["/submission"], data / "private", data / "public", load_manifest(data),
                manifest_sha256=sha256_file(data / "manifest.json"),
            )  # fmt: skip
            _reports[task_id] = dump_report(report).encode()
        (places["/out"] / "report.json").write_bytes(_reports[task_id])

    def put(self, files) -> None:
        pass

    def get(self, path, **_options: object) -> bytes:
        places = {mount.target: mount.source for mount in self.spec.mounts}
        return (places["/out"] / Path(path).name).read_bytes()

    def alive(self) -> bool:
        return True

    def stop(self) -> None:
        pass

    def __enter__(self) -> StubSandbox:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


def use_stub() -> None:
    """Put the stub in the place of every sandbox in this process."""
    for module in (runner.execute, runner.sweep.freeze, runner.sweep.jobs):
        module.choose_backend = lambda _name="auto": StubBackend()


def run_stubbed(job: Job) -> AttemptEnd:
    """``run_job`` without a sandbox; workers are given this function by name."""
    use_stub()
    return run_job(job)
