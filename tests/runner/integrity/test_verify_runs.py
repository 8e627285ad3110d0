"""``verify``: an honest run verifies, and a run with one changed byte anywhere is named, with the place."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.files import sha256_file
from hf_datasets.records import load_record
from runner import ended
from runner.errors import UsageProblem
from runner.execute import regrade, rejudge
from runner.judges import RulesJudge
from runner.trace import line_hash
from runner.verify import verify

pytestmark = pytest.mark.bubblewrap
REPOSITORY = Path(__file__).parents[3]


def edit(path: Path, change) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))


def trace_lines(run: Path) -> list[bytes]:
    return (run / "trace.jsonl").read_bytes().splitlines(keepends=True)


def set_trace(run: Path, lines: list[bytes]) -> None:
    (run / "trace.jsonl").write_bytes(b"".join(lines))


def chained(lines: list[bytes]) -> list[bytes]:
    """The same events with a chain that holds, as somebody would write who knows how."""
    previous, out = "", []
    for number, line in enumerate(lines):
        event = {**json.loads(line), "seq": number, "prev": previous}
        out.append(json.dumps(event, separators=(",", ":")).encode() + b"\n")
        previous = line_hash(out[-1])
    return out


def test_an_honest_run_verifies(run, data):
    before = {path: sha256_file(path) for path in run.rglob("*") if path.is_file()}
    found = verify(run, data)
    assert (found.state, found.differences) == ("verified", [])
    assert {path: sha256_file(path) for path in run.rglob("*") if path.is_file()} == before


def test_the_submission_scored_again_gives_the_same_report(run, data):
    assert verify(run, data, again=True).differences == []
    report = json.loads((run / "report.json").read_text())
    case = report["cases"][0]
    case["score"], case["metrics"] = 1.0 - case["score"], {}
    (run / "report.json").write_text(json.dumps(report, sort_keys=True, indent=1) + "\n")
    edit(run / "record.json", {"report_sha256": sha256_file(run / "report.json")})
    found = verify(run, data, again=True)
    assert any("report.json" in words or "record.json" in words for words in found.differences)


@pytest.mark.parametrize("which", range(4))
def test_one_byte_of_the_trace(run, data, which):
    """Whichever line it is in, the last one included, and whether or not the JSON stays JSON."""
    lines = trace_lines(run)
    number = [0, len(lines) // 2, len(lines) - 2, len(lines) - 1][which]
    for at in (len(lines[number]) // 3, len(lines[number]) - 3):
        changed = bytearray(lines[number])
        changed[at] ^= 1
        set_trace(run, [*lines[:number], bytes(changed), *lines[number + 1 :]])
        found = verify(run, data)
        assert found.state == "differs"
        assert any(words.startswith("trace.jsonl is not the file") for words in found.differences)


def test_every_byte_of_the_trace_counts(run, data):
    """The whole file is under one digest, so no byte is left out; tried on a sample of them."""
    path = run / "trace.jsonl"
    content = path.read_bytes()
    for at in range(0, len(content), max(1, len(content) // 60)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x20]) + content[at + 1 :])
        assert verify(run, data).state == "differs", at


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda lines: lines[:-1], "does not end with an end"),
        (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], "trace.jsonl:2 does not follow"),
        (lambda lines: [*lines[:2], *lines[3:]], "trace.jsonl:3 does not follow"),
        (lambda lines: [*lines, lines[-1]], "goes on after the run's end"),
        (lambda lines: [*lines[:-1], lines[-1][:-5]], "trace.jsonl"),
        (lambda lines: chained([lines[0], lines[2], lines[1], *lines[3:]]), "trace.jsonl is not the file"),
    ],
    ids=["last-removed", "swapped", "removed", "appended", "cut", "rechained"],
)
def test_lines_removed_swapped_or_added(run, data, change, words):
    set_trace(run, change(trace_lines(run)))
    found = verify(run, data)
    assert found.state == "differs"
    assert any(words in line for line in found.differences), found.differences


NUMBERS = {
    "overall": 0.99,
    "agentic": 0.99,
    "task_score": 0.99,
    "s1": 0.01,
    "s3": 0.01,
    "s4": 0.01,
    "s5": 0.01,
}
OTHER = {
    "turns": 1, "tokens_in": 7, "completion": 0.25, "n_scored": 1, "error_codes": ["E1.none"], "agent": "other",
    "end_detail": "x", "metrics": {}, "hardware_class": "h100", "seconds_wall": 1.5, "sandbox": "docker",
    "evidence_sha256": "0" * 64, "rubric_sha256": "0" * 64, "skill": 1.0, "finished_at": "2020-01-01T00:00:00Z",
    "cell_sha256": "0" * 64, "report_sha256": "0" * 64, "judgement_sha256": "0" * 64, "submission_sha256": "0" * 64,
    "supersedes": "0" * 64,
}  # fmt: skip


@pytest.mark.parametrize("field", [*NUMBERS, *OTHER])
def test_a_changed_field_of_the_record_is_named(run, data, field):
    value = {**NUMBERS, **OTHER}[field]
    assert json.loads((run / "record.json").read_text())[field] != value
    edit(run / "record.json", {field: value})
    found = verify(run, data)
    assert found.state == "differs"
    named = {"supersedes": "superseded/record-0000", "cell_sha256": "cell_sha256"}.get(field, field)
    assert any(named in line for line in found.differences), found.differences


def test_the_record_is_compared_byte_for_byte(run, data):
    path = run / "record.json"
    path.write_text(path.read_text().rstrip("\n") + "  \n")
    assert verify(run, data).differences == ["record.json is not written as a record is"]


@pytest.mark.parametrize("name", ["cell.json", "report.json", "judgement.json", "submission/manifest.json"])
def test_a_changed_file_is_named(run, data, name):
    path = run / name
    path.write_text(path.read_text() + " ")
    assert any(name in line and "sealed over" in line for line in verify(run, data).differences)
    path.unlink()
    assert any(name in line for line in verify(run, data).differences)


def test_an_output_changed_after_collection_is_named(run, data):
    output = next(path for path in (run / "submission").glob("*/*") if path.parent.name != ".process")
    output.write_text(output.read_text() + " ")
    found = verify(run, data)
    assert any(
        output.name in line and "not the file that was collected" in line for line in found.differences
    )


def resealed(run: Path, name: str, field: str) -> None:
    """Put the digest of a forged file into the record, as a forger would."""
    edit(run / "record.json", {field: sha256_file(run / name)})


def test_a_forged_item_does_not_fit_the_rules_even_with_a_fitting_digest(run, data):
    judgement = json.loads((run / "judgement.json").read_text())
    item = next(item for item in judgement["items"] if item["value"] == 0)
    item["value"] = 1.0
    (run / "judgement.json").write_text(json.dumps(judgement))
    resealed(run, "judgement.json", "judgement_sha256")
    found = verify(run, data)
    assert any("its items give" in line for line in found.differences), found.differences


def test_a_forged_judgement_that_adds_up_is_not_what_the_rules_say(run, data):
    judgement = json.loads((run / "judgement.json").read_text())
    for item in judgement["items"]:
        item["value"] = 1.0 if item["applies"] else None
    (run / "judgement.json").write_text(json.dumps({**judgement, "s1": 1.0, "s2": 1.0, "s3": 1.0}))
    resealed(run, "judgement.json", "judgement_sha256")
    record = json.loads((run / "record.json").read_text())
    agentic = 0.75 + 0.15 * record["s4"] + 0.1 * record["s5"]
    totals = {
        "agentic": agentic,
        "overall": (agentic + record["task_score"]) / 2,
        "s1": 1.0,
        "s2": 1.0,
        "s3": 1.0,
    }
    edit(run / "record.json", totals)
    found = verify(run, data)
    assert any("not what the rules say" in line for line in found.differences), found.differences


def test_a_forged_total_of_a_report_does_not_fit_its_cases(run, data):
    edit(run / "report.json", {"n_scored": 1, "completion": 1.0})
    resealed(run, "report.json", "report_sha256")
    assert any("its cases give" in line for line in verify(run, data).differences)


def test_a_regrade_killed_before_sealing_is_named_and_mended(run, data, monkeypatch):
    """Old record, new report: ``verify`` says so, and the next ``regrade`` or ``rejudge`` leaves a whole run."""
    other = json.loads((run / "report.json").read_text())
    before = load_record(run / "record.json")

    def killed(self, environment):
        raise KeyboardInterrupt

    for verb, act in (
        ("regrade", lambda: regrade(run, data, "bubblewrap")),
        ("rejudge", lambda: rejudge(run, data, RulesJudge())),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(ended.Run, "seal", killed)
            patch.setattr(ended, "evaluate", _report_of({**other, "metric_set": f"another-{verb}"}))
            with pytest.raises(KeyboardInterrupt):
                regrade(run, data, "bubblewrap")
        found = verify(run, data)
        assert any("a regrade was interrupted" in line for line in found.differences), found.differences
        act()
        assert verify(run, data).differences == []
        assert load_record(run / "record.json").overall == before.overall


def _report_of(report):
    from evaluator.report import TaskReport, dump_report
    from runner.evaluate import Evaluation

    made = TaskReport.model_validate(report)
    return lambda *_: Evaluation(made, dump_report(made).encode(), {}, 0.0)


@pytest.mark.parametrize(
    ("name", "act"),
    [("report.json", "rejudge"), ("judgement.json", "regrade"), ("judgement.json", "rejudge")],
)
def test_no_later_step_seals_a_file_that_was_edited(run, data, name, act):
    edit(run / name, {"task_score": 0.9} if name == "report.json" else {"s1": 1.0})
    before = (run / "record.json").read_bytes()
    with pytest.raises(UsageProblem, match=f"{name} is not the file that record.json was sealed over"):
        rejudge(run, data, RulesJudge()) if act == "rejudge" else regrade(run, data, "bubblewrap")
    assert (run / "record.json").read_bytes() == before


def test_a_superseded_record_must_still_be_there(run, data):
    regrade(run, data, "bubblewrap")
    assert verify(run, data).differences == []
    (kept,) = (run / "superseded").glob("record-*")
    kept.write_text(kept.read_text() + " ")
    assert any("superseded/record-" in line for line in verify(run, data).differences)


def command(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "runner", *map(str, words)], capture_output=True, text=True, cwd=REPOSITORY
    )


def test_exit_codes(run, data, tmp_path):
    assert command("verify", run, "--data", data).returncode == 0
    empty = tmp_path / "empty"
    empty.mkdir()
    assert command("verify", empty, "--data", data).returncode == 2
    edit(run / "record.json", {"overall": 0.5})
    answer = command("verify", run, "--data", data, "--json")
    assert answer.returncode == 1
    (row,) = json.loads(answer.stdout)
    assert row["state"] == "differs"
    assert any("overall" in line for line in row["differences"])
    for name in ("record.json", "cell.json"):
        (run / name).rename(tmp_path / name)
    (run / "cell.json").write_bytes((tmp_path / "cell.json").read_bytes())
    assert command("verify", run, "--data", data).returncode == 3


def test_an_error_that_quotes_a_strangers_file_moves_no_cursor(run, data):
    edit(run / "record.json", {"\x1b[2J\x1b]0;owned\x07\u202e": 1})
    for verb in ("show", "verify"):
        done = command(verb, run, *(["--data", data] if verb == "verify" else []))
        assert done.returncode in (1, 2)
        assert not [sign for sign in "\x1b\x07\u202e" if sign in done.stdout + done.stderr]
        assert "owned" in done.stdout + done.stderr


def test_a_run_that_ended_without_a_score_verifies_too(run, data):
    from runner.execute import _leave_unscored

    for name in ("record.json", "report.json", "judgement.json"):
        (run / name).unlink()
    _leave_unscored(ended.Run.load(run, data), "the evaluator gave no report")
    assert (verify(run, data).state, verify(run, data).differences) == ("verified", [])
    edit(run / "unscored.json", {"task_score": 0.5})
    assert verify(run, data).state == "differs"


def test_without_the_staged_data_it_is_said_that_not_all_was_checked(run, tmp_path):
    cell = json.loads((run / "cell.json").read_text())
    edit(run / "cell.json", {"release": "full"})
    edit(run / "record.json", {"release": "full", "cell_sha256": sha256_file(run / "cell.json")})
    found = verify(run, tmp_path / "nowhere")
    assert cell["release"] == "phantom"
    assert (found.state, found.exit_code) == ("incomplete", 3)
    assert "not a manifest" in found.differences[0] or "stage" in found.differences[0]


def test_a_signature_goes_with_the_record_it_was_made_over(run, data, tmp_path):
    from hf_datasets.signing import sign_record
    from runner.verify import require_signature

    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    allowed = tmp_path / "allowed"
    allowed.write_text(f"me@example.org {(tmp_path / 'key.pub').read_text()}")
    sign_record(run / "record.json", tmp_path / "key")
    regrade(run, data, "bubblewrap")
    found = verify(run, data)
    require_signature(found, allowed)
    assert found.differences == ["record.json.sig is missing: the record is not signed"]
    assert len(list((run / "superseded").glob("record-*.json.sig"))) == 1
    sign_record(run / "record.json", tmp_path / "key")
    found = verify(run, data)
    require_signature(found, allowed)
    assert (found.state, found.notes) == ("verified", ["signed by me@example.org"])
