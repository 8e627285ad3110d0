"""What makes a task sound: one small check a function, each yielding its problems in words."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from evaluator.report import TaskReport
from runner.sandbox.base import Backend
from tasks.manifest import Manifest, load_manifest
from tasks.schema import Baseline, Redistribution, Release, Task, Tier

SCORE_TOLERANCE = 5e-4
PLACEHOLDER = re.compile(r"\b(?:TODO|FIXME|TBD|XXX)\b")


@dataclass
class Subject:
    """A task under examination; its phantom is made when a check first asks for it.

    Parameters
    ----------
    room : Path
        An empty folder for data and submissions.
    backend : Backend or None
        Where snippets run; None leaves them out.
    """

    task: Task
    folder: Path
    room: Path
    backend: Backend | None = None
    online: bool = False

    @cached_property
    def data(self) -> Path:
        from hf_datasets import ensure_phantom

        return ensure_phantom(self.task.id, self.room / "data")

    @cached_property
    def manifest(self) -> Manifest:
        return load_manifest(self.data)

    @property
    def declared(self) -> Baseline:
        """What the task says its anchors score on phantoms."""
        return self.task.baselines.get(Release.PHANTOM, Baseline())

    def score(self, name: str, write: Callable[[Path], None]) -> TaskReport:
        """Score what ``write`` puts into a fresh folder."""
        from evaluator.score import score

        submission = self.room / name
        submission.mkdir()
        write(submission)
        return score(
            self.task, submission, self.data / "private", self.data / "public", self.manifest, jobs=1
        )


Check = Callable[[Subject], Iterator[str]]


# --- texts ---


def texts(subject: Subject) -> Iterator[str]:
    """The four files hold no placeholder that its author still has to replace."""
    for path in sorted(subject.folder.iterdir()):
        if path.suffix not in (".md", ".yaml", ".txt"):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if found := PLACEHOLDER.search(line):
                yield f"{path.name}, line {number}: {found[0]} is left: {line.strip()[:80]}"


def briefs(subject: Subject) -> Iterator[str]:
    """Every tier renders, with nothing unresolved."""
    from tasks.brief import BriefError, render

    for tier in Tier:
        try:
            render(subject.task, tier, release=Release.PHANTOM, n_cases=1)
        except BriefError as error:
            yield f"the {tier} brief does not render: {error}"


def wording(subject: Subject) -> Iterator[str]:
    """No long line of a reference text stands in what the agent reads."""
    from tasks.brief import render

    shown = render(subject.task, Tier.LITE, release=Release.PHANTOM, n_cases=1).text
    shown += render(subject.task, Tier.STANDARD, release=Release.PHANTOM, n_cases=1).text
    for path in sorted((subject.data / "private").rglob("*.txt")):
        for sentence in re.split(r"(?<=[.!?])\s+", path.read_text(encoding="utf-8")):
            if len(sentence) >= 40 and sentence in shown:
                yield f"the brief repeats a reference: {sentence[:80]!r}"


def requirements(subject: Subject) -> Iterator[str]:
    """Requirements parse, are pinned and, when asked online, resolve together."""
    from packaging.requirements import InvalidRequirement, Requirement

    path = subject.folder / "requirements.txt"
    wanted = [line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
    if not any(wanted):
        yield "requirements.txt names no package"
    for line in filter(None, wanted):
        try:
            parsed = Requirement(line)
        except InvalidRequirement as error:
            yield f"requirements.txt: {line!r} is no requirement: {' '.join(str(error).split())}"
            continue
        pins = [pin for pin in parsed.specifier if pin.operator == "==" and "*" not in pin.version]
        if len(pins) != 1 and parsed.url is None:
            yield f"requirements.txt: {line!r} is not pinned; write {parsed.name}==VERSION"
    if subject.online:
        yield from _resolved(path)


def _resolved(path: Path) -> Iterator[str]:
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    command = (
        [uv, "pip", "compile", "--quiet", "--python-version", "3.11", str(path)]
        if uv
        else [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "-r", str(path)]
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        lines = [line.strip() for line in done.stderr.strip().splitlines() if line.strip()]
        yield f"requirements.txt does not resolve: {' '.join(lines)[-300:] or 'no reason given'}"


# --- terms ---

_FORBIDS_ALL = re.compile(r"prohibit|no redistribution|credentialed health data", re.IGNORECASE)
_FORBIDS_CHANGE = re.compile(r"\bND\b|NoDerivat", re.IGNORECASE)
_STATES_NOTHING = re.compile(r"^(none|no |unknown|not |mixed)|without an explicit", re.IGNORECASE)
_NON_COMMERCIAL = re.compile(r"\bNC\b|non-?commercial", re.IGNORECASE)


def terms(subject: Subject) -> Iterator[str]:
    """Licence, access and what may leave the machine fit together."""
    source = subject.task.source
    leaves, licence = source.redistribution, source.license
    if source.access == "credentialed" and leaves is not Redistribution.NONE:
        yield f"access is credentialed but redistribution is {leaves}; use none"
    for rule, words in (
        (_FORBIDS_ALL, "forbids passing on"),
        (_FORBIDS_CHANGE, "forbids derivatives"),
        (_STATES_NOTHING, "grants nothing clearly"),
    ):
        if rule.search(licence) and leaves is not Redistribution.NONE:
            yield f"the licence ({licence}) {words} but redistribution is {leaves}; use none"
    if _NON_COMMERCIAL.search(licence) and leaves is Redistribution.ALLOWED:
        yield f"the licence ({licence}) is non-commercial but redistribution is allowed; use derived or none"
    if source.access != "open" and (source.downloads or source.hub or source.record):
        yield f"access is {source.access} but files for download are named; they would bypass the agreement"


# --- phantom and anchors ---


def phantom(subject: Subject) -> Iterator[str]:
    """The staged phantom holds what the task declares, and nothing else is shown."""
    task, manifest = subject.task, subject.manifest
    if not manifest.cases:
        yield "the phantom has no case"
    seen: set[str] = set()
    for case in manifest.cases:
        for entry in case.public:
            name = entry.path.removeprefix(f"{case.id}/")
            fitting = {file.name for file in task.inputs if Path(name).match(file.name)}
            if not fitting:
                yield f"{case.id}: public file {name} is none of the task's inputs"
            seen |= fitting
        there = {entry.path.removeprefix(f"{case.id}/") for entry in case.private}
        if missing := set(task.references) - there:
            yield f"{case.id}: reference {', '.join(sorted(missing))} is not staged"
    for name in sorted({file.name for file in task.inputs} - seen):
        yield f"no case of the phantom holds the declared input {name}"


def oracle(subject: Subject) -> Iterator[str]:
    """The references, handed in, score 1."""
    from evaluator.reference_submissions import write_perfect

    report = subject.score(
        "perfect",
        lambda out: write_perfect(subject.task, subject.manifest, subject.data / "private", out),
    )
    if abs(report.task_score - 1.0) > 1e-9:
        yield f"the references score {report.task_score:.4f}, expected 1"
    for case in report.cases:
        if case.error is not None:
            yield f"the reference of {case.case_id} is refused: {case.error.message}"


def trivial(subject: Subject) -> Iterator[str]:
    """The declared do-nothing submission scores what the task says."""
    from evaluator.reference_submissions import write_trivial

    report = subject.score(
        "trivial",
        lambda out: write_trivial(subject.task, subject.manifest, subject.data / "public", out),
    )
    found, declared = report.task_score_ungated, subject.declared.trivial
    if declared is None:
        yield f"baselines.phantom.trivial is not declared; {subject.task.trivial.kind} scores {found:.4f}"
    elif abs(found - declared) > SCORE_TOLERANCE:
        yield f"{subject.task.trivial.kind} scores {found:.4f}, baselines.phantom.trivial says {declared:.4f}"
    if not report.all_valid:
        yield "the do-nothing submission is not valid in every case"


def empty(subject: Subject) -> Iterator[str]:
    """An empty folder scores 0."""
    report = subject.score("empty", lambda _: None)
    if report.task_score_ungated != 0:
        yield f"an empty folder scores {report.task_score_ungated:.4f}, expected 0"


def order(subject: Subject) -> Iterator[str]:
    """Doing nothing < the scripted baseline < perfect, as declared."""
    low, high = subject.declared.trivial, subject.declared.strong
    if high is None:
        yield "baselines.phantom.strong is not declared; run the agent 'baseline' and write its score down"
    elif not 0 <= (low or 0.0) < high < 1:
        yield f"expected 0 <= trivial < strong < 1 in baselines.phantom, found {low} and {high}"


def snippets(subject: Subject) -> Iterator[str]:
    """The Lite brief's snippets run on the phantom."""
    if subject.backend is None:
        return
    from runner.snippets import snippet_problems

    yield from snippet_problems(subject.task, subject.data, subject.manifest, subject.backend)


CHECKS: Mapping[str, Check] = {
    check.__name__: check
    for check in (
        texts, briefs, requirements, terms, phantom, wording, oracle, trivial, empty, order, snippets
    )
}  # fmt: skip
NEEDS: Mapping[str, str] = {
    "wording": "phantom",
    "oracle": "phantom",
    "trivial": "phantom",
    "empty": "phantom",
    "snippets": "phantom",
}
"""Check -> the check without which it cannot be made."""
