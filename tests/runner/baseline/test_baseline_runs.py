"""The whole agent: on the host with broken inputs, and in a real sandbox on the phantoms of every task."""

from __future__ import annotations

import json

import numpy as np
import pytest

from evaluator.reference_submissions import write_trivial
from evaluator.score import score
from evaluator.trace import Call, EndReason
from runner.agents.baseline import Baseline, steps
from runner.agents.baseline.plan import load_plan
from runner.agents.baseline.steps import Step
from runner.cell import Cell
from tasks.manifest import load_manifest
from tasks.registry import load_task
from tasks.schema import Release, Tier


def write_slices(public, count, broken=()):
    y, x = np.mgrid[:64, :64]
    clean = np.where(np.hypot(x - 32, y - 32) < 28, 40.0, -1000.0)
    for number in range(count):
        folder = public / f"case-{number}"
        folder.mkdir(parents=True)
        noise = np.random.default_rng(number).normal(0, 40, clean.shape)
        np.save(folder / "input.npy", (clean + noise).astype(np.float32))
        if number in broken:
            (folder / "input.npy").write_bytes(b"not an array")


@pytest.mark.slow
@pytest.mark.parametrize("broken", [(0,), (2,)])
def test_one_broken_input_costs_itself_only(on_host, tmp_path, broken):
    write_slices(tmp_path / "public", 4, broken)
    session = on_host("ldct-denoising-task", tmp_path / "public")
    Baseline().run(session)
    assert session.ended is EndReason.SUBMITTED
    done = {path.parent.name for path in (tmp_path / "workspace" / "outputs").glob("*/enhanced.npy")}
    assert done == {f"case-{number}" for number in range(4) if number not in broken}


BAD_METHOD = """

def bad(item):
    import os, time

    if item["name"] == "case-1":
        os.kill(os.getpid(), 9)
    if item["name"] == "case-3":
        time.sleep(60)
    return item["image"]


METHODS["bad"] = bad
"""


def test_a_worker_that_dies_or_hangs_costs_its_case_only(on_host, tmp_path):
    write_slices(tmp_path / "public", 5)
    session = on_host("ldct-denoising-task", tmp_path / "public")
    workspace = tmp_path / "workspace"
    written = steps.write_tools(session.task, load_plan(session.task.track), "")
    answer = execute(
        session, Step("", "bash", written.code + f"cat >> {steps.WORKSPACE}/method.py <<'X'{BAD_METHOD}X\n")
    )
    assert answer.startswith("exit code 0")
    answer = execute(session, steps.batch("bad", 4))
    assert answer.startswith("exit code 1")
    assert steps.open_cases(answer, otherwise=5) == 2
    done = {path.parent.name for path in (workspace / "outputs").glob("*/enhanced.npy")}
    assert done == {"case-0", "case-2", "case-4"}


def execute(session, step):
    arguments = json.dumps({"language": step.language, "code": step.code})
    return session.turn("", [Call(id="c", name="execute_code", arguments=arguments)])[0].text


@pytest.mark.slow
@pytest.mark.bubblewrap
@pytest.mark.parametrize("tier", [Tier.LITE, Tier.STANDARD])
@pytest.mark.parametrize(
    "task_id",
    ["kidney-seg-task", "ldct-denoising-task", "vqa-rad-task", "iu-xray-report-task", "bccd-det-task"],
)
def test_every_task_is_done_better_than_trivially(task_id, tier, phantoms, tmp_path):
    from runner.execute import Options, run_cell

    options = Options(runs=tmp_path / "runs", data=phantoms, sandbox="bubblewrap")
    outcome = run_cell(
        Cell(agent="baseline", task=task_id, tier=tier, release=Release.PHANTOM, repeat=0), options
    )
    record = outcome.record
    assert outcome.state == "scored"
    assert record.end_reason is EndReason.SUBMITTED
    assert (record.s2, record.s4, record.s5) == (1, 1, 1)
    assert record.s3 >= 0.5
    assert trivial_score(task_id, phantoms, tmp_path) < record.task_score < 1
    folder = outcome.folder / "workspace"
    assert (folder / "plan.md").stat().st_size > 1000
    assert (folder / "plan.png").is_file() is (tier is Tier.STANDARD)
    failed = [
        line
        for line in (outcome.folder / "trace.jsonl").read_text().splitlines()
        if is_failure(json.loads(line))
    ]
    assert failed == []


def is_failure(event):
    return event["type"] == "exec" and event["exit_code"] != 0


def trivial_score(task_id, data, tmp_path):
    task, staged = load_task(task_id), data / "phantom" / task_id
    write_trivial(task, load_manifest(staged), staged / "public", tmp_path / "trivial")
    return score(
        task, tmp_path / "trivial", staged / "private", staged / "public", load_manifest(staged)
    ).task_score


@pytest.fixture(scope="session")
def phantoms(tmp_path_factory):
    return tmp_path_factory.mktemp("data")
