"""Run folders that were damaged, changed, copied or asked for again in another way: one line each, and no number
that is not the run's own.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from evaluator.files import sha256_file
from hf_datasets.records import load_record
from runner.sandbox import choose_backend

COMMANDS = ("show", "explain", "rejudge", "regrade", "run")


@pytest.fixture(scope="module")
def sealed(tmp_path_factory, request):
    """A finished run of the noop agent in a runs folder of its own, made once; ``sealed(place)`` copies it."""
    from runner.cell import Cell
    from runner.execute import Options, run_cell
    from runner.sandbox import SandboxUnavailable
    from tasks.schema import Release, Tier

    root = tmp_path_factory.mktemp("sealed")
    try:
        choose_backend("bubblewrap")
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    cell = Cell("vqa-rad-task", Tier.LITE, Release.PHANTOM, "noop")
    run_cell(cell, Options(root / "runs", request.getfixturevalue("data"), sandbox="bubblewrap"))

    def copy(place: Path) -> None:
        shutil.copytree(root / "runs", place)

    return copy


@pytest.fixture
def call(command, sealed, data):
    """Call a command on a copy of the sealed run."""
    sealed(command.runs)

    def make(verb, **more):
        if verb == "run":
            return command.run(sandbox="bubblewrap", **more)
        options = {"rejudge": {"data": data}, "regrade": {"data": data, "sandbox": "bubblewrap"}}
        return command(verb, command.folder(), **options.get(verb, {}))

    return make


def assert_one_line(answer, code, *words):
    assert answer.code == code, (answer.out, answer.err)
    assert "Traceback" not in answer.err
    said = answer.err + answer.out
    for word in words:
        assert word in said


def half(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path):
    path.write_bytes(b"")


def garbled(path):
    path.write_bytes(bytes(range(256)))


def newer(path):
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema_version": 2}))


@pytest.mark.parametrize("damage", [half, emptied, garbled, newer])
@pytest.mark.parametrize(
    ("name", "needed_by"),
    [
        ("cell.json", {"explain", "rejudge", "regrade", "run"}),
        ("report.json", {"show", "explain", "rejudge"}),
        ("judgement.json", {"show", "explain", "rejudge", "regrade"}),
        ("record.json", set(COMMANDS)),
        ("submission/manifest.json", {"rejudge", "regrade"}),
    ],
)
def test_a_damaged_file_is_named_by_whatever_needs_it(call, command, name, needed_by, damage):
    path = command.folder() / name
    damage(path)
    broken = path.read_bytes()
    for verb in sorted(needed_by):
        if (name, verb) == ("judgement.json", "rejudge"):
            continue  # rules judge anew without it; see below
        answer = call(verb)
        assert_one_line(answer, 2, path.name)
        assert path.read_bytes() == broken


@pytest.mark.parametrize("verb", ["explain", "rejudge", "regrade"])
def test_a_damaged_trace_is_named_with_its_line(call, command, verb):
    trace = command.folder() / "trace.jsonl"
    lines = trace.read_bytes().splitlines(keepends=True)
    trace.write_bytes(b"".join([lines[0], b"[1, 2]\n", *lines[2:]]))
    assert_one_line(call(verb), 2, "trace.jsonl:2")


def edit_limits(folder):
    path = folder / "cell.json"
    path.write_text(
        path.read_text().replace('"turns": 100', '"turns": 101').replace('"turns":100', '"turns":101')
    )


def edit_trace(folder):
    path = folder / "trace.jsonl"
    path.write_text(path.read_text().replace("noop", "poon"))


def append_to_trace(folder):
    path = folder / "trace.jsonl"
    path.write_bytes(path.read_bytes() + path.read_bytes().splitlines(keepends=True)[-1])


def add_an_answer(folder):
    manifest = json.loads((folder / "submission" / "manifest.json").read_text())
    case = manifest["problems"][0]["path"]
    (folder / "submission" / case).parent.mkdir()
    (folder / "submission" / case).write_text('{"answer": "yes"}')


def add_a_plan(folder):
    (folder / "submission" / ".process").mkdir(exist_ok=True)
    (folder / "submission" / ".process" / "plan.md").write_text("# Plan\n")


@pytest.mark.parametrize("change", [edit_limits, edit_trace, append_to_trace, add_an_answer, add_a_plan])
@pytest.mark.parametrize("verb", ["regrade", "rejudge"])
def test_a_run_that_was_changed_after_sealing_is_not_sealed_anew(call, command, change, verb):
    if (change, verb) == (add_an_answer, "rejudge"):
        pytest.skip("a judge does not look at outputs, and hashing them all would cost more than judging")
    before = sha256_file(command.folder() / "record.json")
    change(command.folder())
    answer = call(verb)
    assert_one_line(answer, 2)
    assert "sealed" in answer.out + answer.err or "changed after the run" in answer.out + answer.err
    assert sha256_file(command.folder() / "record.json") == before


@pytest.mark.parametrize("change", [edit_trace, append_to_trace, add_an_answer, add_a_plan])
def test_an_unsealed_run_that_was_changed_is_not_finished(call, command, change):
    (command.folder() / "record.json").unlink()
    change(command.folder())
    assert_one_line(call("run"), 2, "changed after the run")
    assert not (command.folder() / "record.json").exists()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"release": "full"}, "release phantom (asked for: full)"),
        ({"turns": 7}, "turns 100 (asked for: 7)"),
        ({"network": "open"}, "network allowlist (asked for: open)"),
    ],
)
@pytest.mark.parametrize("is_sealed", [True, False])
def test_a_run_never_stands_for_one_that_was_asked_in_another_way(call, command, asked, words, is_sealed):
    if not is_sealed:
        (command.folder() / "record.json").unlink()
    assert_one_line(call("run", **asked), 2, words, "--runs-dir")


def test_a_run_copied_to_another_place_does_not_stand_for_that_one(call, command):
    shutil.copytree(command.folder(), command.folder(repeat=3))
    assert_one_line(call("run", repeat=3), 2, "repeat 0 (asked for: 3)")
    moved = command.runs.parent / "else where"
    shutil.copytree(command.folder(), moved)
    assert_one_line(command("show", moved), 0, "OVERALL")


def test_what_a_killed_runner_left_is_graded_and_judged_anew(call, command):
    """An old evaluator's report, or the judgement of a judge that was not asked for, does not get into the record."""
    folder = command.folder()
    record = load_record(folder / "record.json")
    (folder / "record.json").unlink()
    for name in ("report.json", "judgement.json"):
        kept = json.loads((folder / name).read_text())
        old = {"metric_set": "old"} if name == "report.json" else {"judge": "llm", "judge_model": "x"}
        (folder / name).write_text(json.dumps({**kept, **old}))
    assert call("run").code == 0
    assert load_record(folder / "record.json") == record


def test_a_killed_run_of_another_version_of_the_task_is_not_finished(command, sealed, data):
    sealed(command.runs)
    (command.folder() / "record.json").unlink()
    cell = json.loads((command.folder() / "cell.json").read_text())
    (command.folder() / "cell.json").write_text(json.dumps({**cell, "task_sha256": "0" * 64}))
    answer = command.run(sandbox="bubblewrap")
    assert_one_line(answer, 3, "vqa-rad-task has changed since")


def test_a_run_without_a_submission_cannot_be_graded(call, command):
    (command.folder() / "record.json").unlink()
    shutil.rmtree(command.folder() / "submission")
    assert_one_line(call("regrade"), 3, "no submission to grade")


def test_rejudging_by_rules_writes_an_equal_judgement_only_once(call, command):
    before = sha256_file(command.folder() / "judgement.json")
    assert call("rejudge").code == 0
    assert sha256_file(command.folder() / "judgement.json") == before
    assert [path.name.split("-")[0] for path in (command.folder() / "superseded").iterdir()] == ["record"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"task": "../../outside"},
        {"agent": "../../../outside"},
        {"agent": "nop"},
        {"cost_usd": 0},
        {"cost_usd": "inf"},
    ],
)
def test_a_wrong_request_leaves_nothing_behind(command, wrong):
    assert_one_line(command.run(**wrong), 2)
    assert not [path for path in command.runs.parent.rglob("*") if path != command.runs]


def test_places_that_hold_no_runs_are_named(command, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    for place in (tmp_path / "absent", file):
        assert_one_line(command("list", "runs", runs_dir=place), 2, str(place))
    answer = command.run(sandbox="bubblewrap", runs_dir=file)
    assert_one_line(answer, 3, f"{file}")
    assert "Errno" not in answer.err
