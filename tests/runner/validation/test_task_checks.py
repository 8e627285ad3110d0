"""Every check finds the fault that it is there for, and finds none in a sound task."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner import task_checks as checks
from runner.snippets import lite_snippets, snippet_problems
from runner.task_checks import CHECKS, NEEDS, Subject
from runner.validate import Finding, Verdict, made, validate, validate_all
from tasks.registry import load_task, task_folder
from tasks.schema import Baseline, HubFiles, Redistribution, Release

TASK = "bccd-det-task"


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    folder = Path(shutil.copytree(task_folder(TASK), tmp_path / TASK))
    (tmp_path / "room").mkdir()
    return Subject(load_task(TASK), folder, tmp_path / "room")


def changed(subject: Subject, **fields: object) -> Subject:
    subject.task = subject.task.model_copy(update=fields)
    return subject


def from_source(subject: Subject, **fields: object) -> Subject:
    return changed(subject, source=subject.task.source.model_copy(update=fields))


def only(problems: Iterator[str]) -> str:
    (problem,) = problems
    return problem


def test_a_sound_task_has_no_problem() -> None:
    verdict = validate(TASK, None)
    assert verdict.ok
    assert {finding.check for finding in verdict.findings} == {"schema", *CHECKS}
    assert [finding.check for finding in verdict.findings if finding.state != "ok"] == ["snippets"]
    assert list(verdict.lines()) == []


def test_checks_come_after_what_they_need() -> None:
    order = list(CHECKS)
    assert all(order.index(need) < order.index(check) for check, need in NEEDS.items())


@pytest.mark.parametrize("name", ["task.yaml", "lite.md", "standard.md", "requirements.txt"])
def test_a_placeholder_is_named_with_its_line(subject: Subject, name: str) -> None:
    path = subject.folder / name
    lines = path.read_text().count("\n")
    path.write_text(path.read_text() + "# TODO: the rest\n")
    assert only(checks.texts(subject)) == f"{name}, line {lines + 1}: TODO is left: # TODO: the rest"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("numpy", "is not pinned; write numpy==VERSION"),
        ("numpy>=1.26", "is not pinned"),
        ("numpy==2.*", "is not pinned"),
        ("numpy = 2.2", "is no requirement"),
        ("", "names no package"),
    ],
)
def test_requirements_are_pinned_and_parse(subject: Subject, line: str, words: str) -> None:
    (subject.folder / "requirements.txt").write_text(f"{line}\n")
    assert words in only(checks.requirements(subject))


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"access": "credentialed"}, "access is credentialed but redistribution is allowed"),
        ({"license": "CC BY-NC 4.0"}, "non-commercial but redistribution is allowed"),
        ({"license": "CC BY-ND 4.0"}, "forbids derivatives"),
        ({"license": "sharing is prohibited"}, "forbids passing on"),
        ({"license": "none stated"}, "grants nothing clearly"),
        ({"access": "registration", "hub": HubFiles(repo="a/b", files=("x",))}, "would bypass the agreement"),
    ],
)
def test_terms_fit_together(subject: Subject, terms: dict, words: str) -> None:
    assert words in only(checks.terms(from_source(subject, **terms)))
    if "hub" not in terms:
        assert not list(checks.terms(from_source(subject, redistribution=Redistribution.NONE)))


def test_the_phantom_holds_what_is_declared(subject: Subject) -> None:
    picture = subject.task.inputs[0]
    depth = picture.model_copy(update={"name": "depth.png"})
    assert only(checks.phantom(changed(subject, inputs=(picture, depth)))).endswith(
        "declared input depth.png"
    )
    problems = list(checks.phantom(changed(subject, inputs=(depth,), references=("boxes.json", "more.json"))))
    cases = len(subject.manifest.cases)
    assert sum("image.png is none of the task's inputs" in problem for problem in problems) == cases
    assert sum("reference more.json is not staged" in problem for problem in problems) == cases


def test_references_that_do_not_score_one_are_found(subject: Subject) -> None:
    path = next((subject.data / "private").rglob("boxes.json"))
    boxes = json.loads(path.read_text())["boxes"]
    path.write_text(json.dumps({"boxes": [*boxes, {**boxes[0], "class": "parasite"}]}))
    finding = made("oracle", lambda: checks.oracle(subject))
    assert finding.state == "failed"
    assert "parasite" in finding.problems[0]


def test_references_that_count_twice_are_found(subject: Subject) -> None:
    path = next((subject.data / "private").rglob("boxes.json"))
    boxes = json.loads(path.read_text())["boxes"]
    changed(subject, output=subject.task.output.model_copy(update={"max_detections": len(boxes) - 2}))
    assert "expected 1" in next(checks.oracle(subject))


def test_a_wrong_claim_about_the_trivial_score_is_found(subject: Subject) -> None:
    changed(subject, baselines={Release.PHANTOM: Baseline(trivial=0.2, strong=0.9)})
    assert only(checks.trivial(subject)) == "no_box scores 0.0000, baselines.phantom.trivial says 0.2000"


def test_a_trivial_score_must_be_declared(subject: Subject) -> None:
    assert "is not declared; no_box scores 0.0000" in only(checks.trivial(changed(subject, baselines={})))


@pytest.mark.parametrize(("low", "high"), [(0.5, 0.4), (0.5, 0.5), (0.2, 1.0)])
def test_the_order_of_the_anchors(subject: Subject, low: float, high: float) -> None:
    changed(subject, baselines={Release.PHANTOM: Baseline(trivial=low, strong=high)})
    assert "expected 0 <= trivial < strong < 1" in only(checks.order(subject))


def test_a_missing_baseline_is_named(subject: Subject) -> None:
    assert "run the agent 'baseline'" in only(checks.order(changed(subject, baselines={})))


def test_a_brief_that_repeats_a_reference_is_found(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    subject = Subject(load_task("iu-xray-report-task"), task_folder("iu-xray-report-task"), tmp_path / "room")
    assert not list(checks.wording(subject))
    sentence = next(
        line
        for line in (task_folder("iu-xray-report-task") / "standard.md").read_text().splitlines()
        if len(line) > 60
    )
    next((subject.data / "private").rglob("report.txt")).write_text(f"{sentence}\n")
    assert list(checks.wording(subject))


# --- snippets ---


@pytest.mark.bubblewrap
@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("print(sorted(__import__('os').listdir('/data/public')))", "of the pilot case is not there"),
        ("x = 1", "prints nothing"),
        ("print(1)\nraise ValueError('no such thing')", "exit code 1: ValueError: no such thing"),
    ],
)
def test_a_snippet_that_fails_in_the_sandbox_is_named(
    subject: Subject, code: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runner import snippets
    from runner.sandbox import choose_backend

    monkeypatch.setattr(snippets, "lite_snippets", lambda *_: [(False, code)])
    monkeypatch.setattr(snippets, "EXAMPLES", 0)
    backend = choose_backend("bubblewrap")
    assert words in only(snippet_problems(subject.task, subject.data, subject.manifest, backend))


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        ([(True, "def broken(")], "snippet 1 of the Lite brief is not Python"),
        ([(True, "import torch")], "no Python snippet that runs without weights"),
    ],
)
def test_snippets_are_read_before_any_sandbox_is_made(subject, blocks, words, monkeypatch) -> None:
    from runner import snippets

    monkeypatch.setattr(snippets, "lite_snippets", lambda *_: blocks)
    problems = snippet_problems(subject.task, subject.data, subject.manifest, backend=None)  # type: ignore[arg-type]
    assert words in only(problems)


def test_blocks_are_told_apart() -> None:
    blocks = lite_snippets(load_task(TASK), 8)
    assert [weights for weights, _ in blocks] == [False, True, False]


# --- many ---


def test_a_task_whose_check_breaks_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    verdicts = validate_all(["no-such-task", "dentex-det-task"], 1, ["--no-snippets"], lines.append)
    assert [verdict.ok for verdict in verdicts] == [False, True]
    assert "the check itself broke" in "".join(verdicts[0].lines())
    assert [line for line in lines if line.startswith("[2/2]")]


def test_a_row_shows_every_check() -> None:
    verdict = Verdict(
        task="t", seconds=1.0, findings=(Finding(check="schema", state="failed", problems=("x",)),)
    )
    assert verdict.row() == {"task": "t", "s": 1.0, "schema": "failed"}
    assert not verdict.ok
    assert list(verdict.lines()) == ["schema: x"]


def run_cli(arguments: list[str], code: int, monkeypatch, capsys) -> str:
    from runner.cli import main

    monkeypatch.setattr("sys.argv", ["runner", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == code
    return "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["validate"], "a task id or --all"),
        (["validate", TASK, "--all"], "a task id or --all"),
        (["validate", "bcd-det-task", "--no-snippets"], "did you mean 'bccd-det-task'"),
        (["list", "agents", "--paper"], "choose among tasks, not agents"),
    ],
)
def test_wrong_usage_is_told_in_one_line(arguments, words, monkeypatch, capsys) -> None:
    assert words in run_cli(arguments, 2, monkeypatch, capsys)


def test_a_valid_task_ends_with_0_and_json_holds_every_check(monkeypatch, capsys) -> None:
    text = run_cli(["validate", TASK, "--no-snippets", "--json"], 0, monkeypatch, capsys)
    (verdict,) = json.loads(text)
    assert Verdict.model_validate(verdict).ok


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        ([], 48),
        (["--paper"], 24),
        (["--not-paper"], 24),
        (["--track", "detection"], 4),
        (["--access", "credentialed", "--paper"], 3),
        (["--licence", "mit", "--track", "vqa"], 2),
        (["--licence", "no such licence"], 0),
    ],
)
def test_tasks_are_filtered(arguments, count, monkeypatch, capsys) -> None:
    text = run_cli(["list", "tasks", "--json", *arguments], 0, monkeypatch, capsys)
    assert len(json.loads(text)) == count


def test_a_tier_shows_its_models(monkeypatch, capsys) -> None:
    text = run_cli(
        ["list", "tasks", "--json", "--tier", "standard", "--track", "detection"], 0, monkeypatch, capsys
    )
    assert all(row["models"].count(";") >= 1 for row in json.loads(text))
