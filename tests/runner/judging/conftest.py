"""Finished runs without a sandbox, and a judge behind a scripted server."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agents"))
sys.path.insert(0, str(Path(__file__).parent))

from judging_parts import KEY, MODEL, TASK, citable, verdict
from scripted_server import ScriptedServer, whole

from evaluator.files import sha256_file
from evaluator.judge.calibration.samples import CHARACTERS
from evaluator.judge.calibration.script import Script
from evaluator.judge.calibration.subjects import CASES, subjects
from evaluator.judge.llm import LlmJudge
from evaluator.judge.material import material_of
from evaluator.report import CaseError, CaseResult, TaskReport, dump_report
from evaluator.submission import CollectedFile, SubmissionManifest, dump_submission_manifest, process_folder
from evaluator.trace import Files
from runner import cell as files
from runner.cell import CellFile
from runner.ended import Run
from runner.judge_endpoint import JudgeEndpoint, llm_settings
from runner.judges import JudgeProfile, RulesJudge
from runner.trace import TraceWriter
from tasks.manifest import MANIFEST_NAME, Case, Manifest, dump_manifest
from tasks.registry import load_task
from tasks.schema import Limits, Tier, Track


@pytest.fixture
def serve(monkeypatch):
    """Start a scripted server: ``serve(step, step, ...)``."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ExitStack() as stack:
        yield lambda *steps: stack.enter_context(ScriptedServer(steps))


@pytest.fixture
def profile():
    """A judge's profile for a server; patient, but only for an instant."""

    def make(server, **more):
        settings = {
            "model": "openai/judge-1",
            "base_url": server.url,
            "key_env": "TEST_JUDGE_KEY",
            "requests_per_minute": 1e6,
            "retries": {"tries": 3, "first_wait": 0.01, "longest_wait": 0.02, "total_wait": 5},
            "prices": {"input": 2, "output": 10, "source": "a test", "date": "2026-01-01"},
        }
        return JudgeProfile.model_validate({**settings, **more})

    return make


@pytest.fixture
def judge(profile):
    """An LLM judge that asks a server, and notes how long it would have slept."""

    def make(server, **more):
        naps = []
        own = profile(server, **more)
        made = LlmJudge(llm_settings(own), JudgeEndpoint(own, KEY, sleep=naps.append))
        object.__setattr__(made, "naps", naps)
        return made

    return make


@pytest.fixture
def material(tmp_path):
    """Material of a character of the calibration set: ``material("careful-standard")``."""

    def make(character="careful-standard", track=Track.DETECTION):
        subject, chosen = subjects()[track], CHARACTERS[character]
        folder = tmp_path / f"{track.value}-{character}"
        folder.mkdir()
        script = Script(folder, subject, chosen.tier)
        chosen.act(script, subject)
        return material_of(subject.assignment(track, chosen.tier), script.events, folder, [subject.shape])

    return make


@pytest.fixture
def answering(material):
    """Steps for a server that judges ``careful-standard``: ``answering(value=0, plan_method=opinion(...))``."""
    subject = material()
    events = citable(subject)

    def make(value=None, **own):
        return lambda request: whole(json.dumps(verdict(request, events, value, **own)))

    make.material = subject
    make.events = events
    return make


@pytest.fixture
def finished_run(tmp_path):
    """Write a finished run, judged by rules: ``finished_run(3)`` is the folder of repeat 3."""
    data = tmp_path / "data" / "lite" / TASK
    (data / "public").mkdir(parents=True)
    cases = tuple(Case(id=case, public=(), private=(), origin="x") for case in CASES)
    manifest = Manifest(
        task=TASK,
        release="lite",
        seed=0,
        source="s",
        license="l",
        redistribution="none",
        generator="g",
        cases=cases,
    )
    (data / MANIFEST_NAME).write_text(dump_manifest(manifest))
    task = load_task(TASK)
    subject = subjects()[Track.DETECTION].model_copy(update={"files": task.output.filenames})

    def make(repeat=0, character="careful-standard", model=MODEL):
        folder = tmp_path / "runs" / TASK / "standard" / "somebody" / f"r{repeat:02d}"
        submission = folder / files.SUBMISSION
        submission.mkdir(parents=True)
        script = Script(submission, subject, Tier.STANDARD)
        CHARACTERS[character].act(script, subject)
        with TraceWriter(folder / files.TRACE) as trace:
            for event in script.events:
                trace.append(event)
        plans = process_folder(submission)
        manifest = SubmissionManifest(task=TASK, files=(), process=_collected(plans))
        (submission / files.MANIFEST).write_text(dump_submission_manifest(manifest))
        (folder / files.CELL).write_text(_cell(repeat, model, data).model_dump_json())
        (folder / files.REPORT).write_text(dump_report(_report(script, data)))
        run = Run.load(folder, tmp_path / "data")
        run.judge(RulesJudge())
        run.seal("image")
        return folder

    make.data = tmp_path / "data"
    make.runs = tmp_path / "runs"
    return make


def _collected(folder):
    return tuple(
        CollectedFile(path=path.name, size=path.stat().st_size, sha256=sha256_file(path))
        for path in sorted(folder.glob("*"))
    )


def _cell(repeat, model, data):
    digest = "0" * 64
    return CellFile(
        run_id=f"{TASK}.standard.somebody.r{repeat:02d}-0",
        task=TASK,
        tier="standard",
        release="lite",
        agent="somebody",
        model=model,
        repeat=repeat,
        attempt=1,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        limits=Limits(),
        network="none",
        sandbox="bubblewrap",
        agent_environment="image",
        harness_version="0",
        code_sha256=digest,
        task_sha256=digest,
        manifest_sha256=sha256_file(data / MANIFEST_NAME),
        brief_sha256=digest,
        n_cases=len(CASES),
        price_source=None,
        cpu_count=2,
        memory_mb=1000,
    )


def _report(script, data):
    complete = max((event.complete_cases for event in script.events if isinstance(event, Files)), default=0)
    missing = CaseError(code="missing", message="no such file")
    cases = tuple(
        CaseResult(case_id=case, status="scored", score=0.625)
        if number < complete
        else CaseResult(case_id=case, status="missing", score=0, error=missing)
        for number, case in enumerate(CASES)
    )
    share = complete / len(CASES)
    return TaskReport(
        task=TASK,
        track="detection",
        release="lite",
        metric="map50_coco101",
        metric_set="default",
        task_score=0.625 * share,
        task_score_ungated=0.625 * share,
        n_cases=len(CASES),
        n_scored=complete,
        completion=share,
        all_valid=share == 1,
        format_valid=complete > 0,
        cases=cases,
        manifest_sha256=sha256_file(data / MANIFEST_NAME),
    )
