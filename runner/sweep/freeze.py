"""Digests of what a cell's result depends on, computed on this machine: by the lock, and again by every worker."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluator.files import sha256_file
from runner.agents import require_agent
from runner.agents.profiles import Profile, ReplayProfile
from runner.cell import Cell
from runner.ended import staged_folder, staged_manifest
from runner.execute import Options, effective_limits
from runner.judges import RULES, load_judge_profiles
from runner.sandbox import choose_backend
from runner.sweep.inputs import Inputs
from tasks.brief import render
from tasks.manifest import MANIFEST_NAME
from tasks.names import Release, Tier
from tasks.registry import load_task, task_digest
from tasks.schema import Limits

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {".py", ".yaml", ".md", ".j2", ".txt", ".in", ".Dockerfile", ".sh"}
RUN = ("runner/agents", "runner/sandbox", "runner/images", "runner/answers.py", "runner/limits.py",
       "runner/session.py", "runner/tools.py", "runner/workspace.py")  # fmt: skip
JUDGE = ("evaluator/judge", "evaluator/rubric", "evaluator/errors.py", "evaluator/fired.py")
GRADE = ("evaluator",)
HOW_NOT_WHAT = {"prices", "retries", "request_seconds", "key_env", "trace"}
"""Fields of a profile that say what a run costs, how patient it is or where a file lies, not what is asked."""


@dataclass(frozen=True)
class TaskFacts:
    """Of one task on one release; ``briefs`` are digests by tier."""

    task_sha256: str
    manifest_sha256: str
    n_cases: int
    limits: Limits
    briefs: dict[Tier, str]


@dataclass(frozen=True)
class Freezer:
    """Computes digests for the cells of one sweep; what many cells share is computed once.

    Every method raises ``UsageProblem`` or ``TaskError`` for an unknown name, ``EnvironmentProblem`` where data are
    not staged, and ``SandboxUnavailable`` where there is no sandbox.
    """

    options: Options
    release: Release
    gpus: int = 0

    def inputs(self, cell: Cell) -> Inputs:
        facts = self.task(cell.task)
        agent, evaluator = self.environments()
        return Inputs(
            brief_sha256=facts.briefs[cell.tier],
            manifest_sha256=facts.manifest_sha256,
            agent_sha256=self.agent(cell.agent),
            agent_environment=agent,
            settings_sha256=self.settings(cell.task),
            code_run=code_part("run"),
            task_sha256=facts.task_sha256,
            evaluator_environment=evaluator,
            code_grade=code_part("grade"),
            judge_sha256=self.judge(),
            code_judge=code_part("judge"),
        )

    @functools.cache  # noqa: B019  (there is one freezer a process, and it lives as long)
    def task(self, task_id: str) -> TaskFacts:
        task = load_task(task_id)
        data = staged_folder(self.options.data, self.release, task)
        manifest = staged_manifest(data)
        limits = effective_limits(task, self.options)
        briefs = {
            tier: render(
                task,
                tier,
                release=self.release,
                n_cases=len(manifest.cases),
                limits=limits,
                network=self.options.network,
            ).sha256
            for tier in (Tier.LITE, Tier.STANDARD)
        }
        return TaskFacts(
            task_digest(task_id), sha256_file(data / MANIFEST_NAME), len(manifest.cases), limits, briefs
        )

    def settings(self, task_id: str) -> str:
        return digest(
            {
                "release": self.release.value,
                "limits": effective_limits(load_task(task_id), self.options).model_dump(mode="json"),
                "network": self.options.network,
                "watch_training": self.options.watch_training,
                "sandbox": self.options.sandbox,
                "gpus": self.gpus,
            }
        )

    @functools.cache  # noqa: B019
    def agent(self, name: str) -> str:
        return profile_digest(require_agent(name, self.options.agents_file))

    @functools.cache  # noqa: B019
    def environments(self) -> tuple[str, str]:
        """Digests of the agent's and the evaluator's environment."""
        backend = choose_backend(self.options.sandbox)
        return backend.environment_digest("agent"), backend.environment_digest("evaluator")

    @functools.cache  # noqa: B019
    def judge(self) -> str:
        name, file = self.options.judge, self.options.judges_file
        profiles = load_judge_profiles(file)
        if name == RULES:
            return digest(RULES)
        if name not in profiles:
            from runner.errors import unknown

            raise unknown("judge", name, [RULES, *profiles])
        from runner.judge_endpoint import llm_settings

        return llm_settings(profiles[name]).sha256

    def __hash__(self) -> int:
        return id(self)


def profile_digest(profile: Profile) -> str:
    """Of what a profile asks; a replayed trace goes in by its content."""
    asked = profile.model_dump(mode="json", exclude=HOW_NOT_WHAT)
    if isinstance(profile, ReplayProfile):
        asked["trace_sha256"] = sha256_file(profile.trace)
    return digest(asked)


@functools.cache
def code_part(part: str) -> str:
    """SHA-256 over the sources that run an agent (``run``), grade (``grade``) or judge (``judge``)."""
    if part == "run":
        return _sources(RUN, ())
    return _sources(JUDGE, ()) if part == "judge" else _sources(GRADE, JUDGE)


def _sources(places: Iterable[str], but: Iterable[str]) -> str:
    found: set[Path] = set()
    for place in places:
        path = ROOT / place
        found |= {path} if path.is_file() else set(path.rglob("*"))
    left_out = [ROOT / place for place in but]
    named = {
        path.relative_to(ROOT).as_posix(): sha256_file(path)
        for path in found
        if path.suffix in SOURCES
        and path.is_file()
        and not any(path == place or place in path.parents for place in left_out)
    }
    return digest(named)


def digest(value: Any) -> str:
    """SHA-256 of a value's canonical JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
