"""A hostile agent in a whole run, from its first call to the sealed record."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import hostile_code as hostile
import psutil
import pytest

from evaluator.trace import read_trace
from hf_datasets.records import load_record
from runner.cell import Cell
from runner.execute import Options, run_cell
from runner.verify import verify
from tasks.schema import Release, Tier

REPOSITORY = Path(__file__).parents[2]
ROOMS = ("tasks", "evaluator", "hf_datasets", "runner")


@dataclass
class Ended:
    """A run that has ended, and what its agent's commands printed."""

    folder: Path
    data: Path
    outputs: list[str]

    def printed(self, word: str) -> object:
        line = next(
            line for output in self.outputs for line in output.splitlines() if line.startswith(word + " ")
        )
        return json.loads(line.removeprefix(word + " "))

    def cases(self) -> dict[str, dict[str, object]]:
        report = json.loads((self.folder / "report.json").read_text())
        return {case["case_id"]: case for case in report["cases"]}


def replayed(folder: Path, *codes: str) -> Path:
    """Profile file of an agent ``hostile`` that makes these calls and submits."""
    calls = [("execute_code", {"language": "python", "code": code}) for code in codes]
    calls += [("submit_results", {"summary": "\x1b[2Jdone\u202e"})] * 2
    lines = []
    for turn, (name, arguments) in enumerate(calls, 1):
        call = {"id": f"c{turn}", "name": name, "arguments": json.dumps(arguments)}
        lines.append(
            json.dumps({"type": "reply", "seq": turn, "turn": turn, "text": "\x1b[2J", "calls": [call]})
        )
    (folder / "recorded.jsonl").write_text("\n".join(lines) + "\n")
    profile = {"kind": "replay", "trace": str(folder / "recorded.jsonl")}
    (folder / "agents.yaml").write_text(json.dumps({"agents": {"hostile": profile}}))
    return folder / "agents.yaml"


@pytest.fixture(scope="session")
def data(staged_phantom) -> Path:
    return staged_phantom("kidney-seg-task").parents[1]


def files_below(*folders: Path) -> list[tuple[int, str]]:
    """Size and the beginning of the SHA-256 of every file with something in it."""
    return sorted(
        (path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest()[:12])
        for folder in folders
        for path in (folder.rglob("*") if folder.is_dir() else [folder])
        if path.is_file() and path.stat().st_size > 0 and "__pycache__" not in path.parts
    )


@pytest.fixture(scope="module")
def ran(backend, canary, data, staged_phantom, tmp_path_factory):
    """Run hostile code on a task; memoised, since the tests look at the same two runs."""
    done: dict[str, Ended] = {}

    def run(task: str, *codes: str) -> Ended:
        if task not in done:
            staged_phantom(task)
            place = tmp_path_factory.mktemp(task)
            mark = f"mark{canary.token[-12:]}"
            profile = replayed(place, *(code.replace("MARK", mark) for code in codes))
            cell = Cell(task, Tier.STANDARD, Release.PHANTOM, "hostile")
            options = Options(place / "runs", data, sandbox=backend.name, agents_file=profile)
            outcome = run_cell(cell, options)
            assert outcome.state == "scored", outcome
            executed = [event for event in read_trace(outcome.folder / "trace.jsonl") if event.type == "exec"]
            assert [event.exit_code for event in executed] == [0] * len(codes), executed
            done[task] = Ended(outcome.folder, data, [event.output for event in executed])
        return done[task]

    return run


@pytest.fixture(scope="module")
def masks(ran, staged_phantom) -> Ended:
    task = staged_phantom("kidney-seg-task")
    secret = files_below(task / "private", task / "manifest.json", *(REPOSITORY / room for room in ROOMS))
    meant_to_be_there = files_below(REPOSITORY / "runner" / "egress" / "forward.py")
    wanted = [pair for pair in secret if pair not in meant_to_be_there]
    look = hostile.LOOK_FOR_FILES.replace("WANTED", repr(wanted))
    plan = repr("words that are about the work and long enough to be a plan " * 6)
    forgeries = hostile.FORGERIES.replace("+ PLAN +", f"+ {plan} +")
    return ran("kidney-seg-task", look, hostile.MASKS, forgeries, hostile.SURVIVOR)


@pytest.fixture(scope="module")
def arrays(ran) -> Ended:
    return ran("ldct-denoising-task", hostile.ARRAYS)


def test_no_reference_harness_file_or_key_is_reachable(masks, canary):
    """Every readable file of a size that one of them has was hashed from inside."""
    assert masks.printed("FOUND") == []
    assert canary.token not in "".join(masks.outputs)
    assert not [name for name in masks.printed("ENV") if "KEY" in name or "TOKEN" in name]


def test_the_probe_finds_what_can_be_read(staged_phantom):
    """The control: where they can be read, the same code finds every reference."""
    private = staged_phantom("kidney-seg-task") / "private"
    code = hostile.LOOK_FOR_FILES.replace("WANTED", repr(files_below(private)))
    code = code.replace('os.walk("/")', f"os.walk({str(private)!r})")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[0].removeprefix("FOUND "))
    assert sorted(found) == sorted(str(path) for path in private.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("number", "code"),
    [(0, "link"), (1, "link"), (2, "hard_link"), (4, "link")],
    ids=["link-to-reference", "folder-to-references", "hard-link", "link-through-proc"],
)
def test_links_into_references_that_exist_only_later(masks, number, code):
    """They dangle for the agent, and would not where the evaluator looks."""
    case = masks.cases()[masks.printed("CASES")[number]]
    assert (case["status"], case["score"], case["error"]["code"]) == ("invalid", 0, code)


def test_a_bomb_is_a_named_error_and_the_honest_case_is_scored(masks):
    names, cases = masks.printed("CASES"), masks.cases()
    assert cases[names[3]]["status"] in ("invalid", "limit")
    assert cases[names[3]]["error"]["code"] in ("trailing_data", "too_large")
    assert cases[names[5]]["status"] == "scored"


def test_forged_files_change_no_number(masks):
    """Reports, records and traces that the agent wrote lie in its workspace, and nowhere else."""
    record = load_record(masks.folder / "record.json")
    assert record.task_score == 0
    assert record.n_scored == 1
    assert verify(masks.folder, masks.data).differences == []
    manifest = json.loads((masks.folder / "submission" / "manifest.json").read_text())
    assert {Path(file["path"]).name for file in manifest["files"]} == {"organ.nii.gz", "lesion.nii.gz"}


def test_planted_python_was_never_run_by_the_evaluator(masks, arrays, canary):
    for ended in (masks, arrays):
        mark = f"mark{canary.token[-12:]}"
        assert not Path("/tmp", mark).exists()
        assert not [path for path in ended.folder.rglob("*") if path.name == mark]
        assert not (ended.folder / "private").exists()
        assert json.loads((ended.folder / "report.json").read_text())["versions"]


@pytest.mark.parametrize(
    ("number", "codes"),
    [
        (0, {"pickled"}),
        (1, {"bad_format"}),
        (2, {"bad_format"}),
        (3, {"too_large"}),
        (4, {"bad_format"}),
        (5, {"non_finite"}),
    ],
    ids=["object-array", "bare-pickle", "code-in-header", "giant-claim", "zip-bomb", "not-a-number"],
)
def test_arrays_that_want_to_be_executed(arrays, number, codes):
    case = arrays.cases()[arrays.printed("CASES")[number]]
    assert case["status"] == "invalid"
    assert case["error"]["code"] in codes, case


def test_survivors_end_with_the_run_and_write_nothing_after_it(masks, canary):
    mark = f"mark{canary.token[-12:]}=1"
    assert not [
        p for p in psutil.process_iter(["cmdline"]) if any(mark in word for word in p.info["cmdline"] or ())
    ]
    survivor = masks.folder / "workspace" / "survivor"
    size = survivor.stat().st_size
    assert size > 0  # they did live for a while
    time.sleep(0.3)
    assert survivor.stat().st_size == size
    assert verify(masks.folder, masks.data).differences == []


def test_words_that_ask_for_points_earn_none(masks):
    items = {item["id"]: item for item in json.loads((masks.folder / "judgement.json").read_text())["items"]}
    earned = {name for name, item in items.items() if item["value"]}
    assert earned <= {"environment_ready", "failures_fixed", "input_checked", "plan_exists"}
    assert items["plan_picture"]["value"] == 0  # a bomb is no picture


def test_nothing_of_the_agents_reaches_a_terminal(masks):
    """ESC, C1 controls, bidirectional overrides: in the trace's file and in what the commands print."""
    shown = (masks.folder / "trace.jsonl").read_text()
    for words in (["show"], ["explain"], ["verify", "--data", masks.data]):
        command = [sys.executable, "-m", "runner", words[0], str(masks.folder), *map(str, words[1:])]
        done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=True)
        shown += done.stdout + done.stderr
    assert not [sign for sign in "\x1b\x07\x9b\u202e\u2066\r" if sign in shown]


def test_a_planted_key_is_in_no_file_of_the_run(masks, arrays, canary):
    """The runner's environment holds the canary's key all the while; argv and logs of other processes do not."""
    for ended in (masks, arrays):
        for path in ended.folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                assert canary.token.encode() not in path.read_bytes(), path


def test_what_is_changed_between_collecting_and_grading_is_noticed(masks, tmp_path):
    import shutil

    from runner.errors import UsageProblem
    from runner.execute import regrade

    copy = tmp_path / "r00"
    shutil.copytree(masks.folder, copy, ignore=shutil.ignore_patterns("workspace"))
    kept = next((copy / "submission").glob("*/organ.nii.gz"))
    (copy / "submission" / kept.parent.name / "organ.nii.gz").write_bytes(b"forged")
    with pytest.raises(
        UsageProblem, match=f"{kept.parent.name}/organ.nii.gz is not the file that was collected"
    ):
        regrade(copy, masks.data, "bubblewrap")
    assert any("organ.nii.gz" in line for line in verify(copy, masks.data).differences)
