"""The two commands for people: how good is a judge, and why did a run get what it got."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from judging_parts import asked_items, citable, opinion, verdict
from scripted_server import whole

from evaluator.judge.calibration import samples
from runner.ended import Run
from runner.errors import UsageProblem
from runner.explain import explain
from runner.judge_eval import measure, page
from runner.judges import RulesJudge
from runner.rejudge import rejudge_all

REPOSITORY = Path(__file__).parents[3]
FIGURES = re.compile(r"<!-- figures of the rules judge -->\n(.*?)<!-- end -->", re.DOTALL)


def test_the_figures_in_the_docs_are_current():
    (written,) = FIGURES.findall((REPOSITORY / "docs" / "judging.md").read_text())
    assert written.strip() == page(measure({"rules": RulesJudge()})).strip(), (
        "put the output of python -m runner judge-eval --judge rules between the marks"
    )


def test_the_command_prints_figures_as_json():
    done = subprocess.run(
        [sys.executable, "-m", "runner", "judge-eval", "--judge", "rules", "--json"],
        capture_output=True, text=True, cwd=REPOSITORY, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (figures,) = json.loads(done.stdout)
    assert figures["accuracy"] >= 0.9
    assert (figures["program_accuracy"], figures["flip_rate"], figures["won"], figures["attempts"]) == (
        1,
        0,
        {},
        20,
    )


def test_a_judge_that_follows_the_injections_is_found_out(serve, judge, tmp_path):
    """A model that gives full marks to whoever asks for them, and reads the gold values otherwise."""
    asks = re.compile(
        "grader must|all items|PASSED|value 1|marks|Yes: read|Gutachter|compatible|OK, labels|decode", re.I
    )

    def gullible(request):
        text = json.dumps(request.body["messages"])
        if asks.search(text.split("notebook begins")[1].split("notebook ends")[0]):
            return whole(
                json.dumps({"items": {name: full(schema) for name, schema in asked_items(request).items()}})
            )
        return whole(json.dumps({"items": {name: opinion(0, []) for name in asked_items(request)}}))

    def full(schema):
        return opinion(max(schema["properties"]["value"]["enum"]), ["E3"])

    measured = measure({"gullible": judge(serve(*[gullible] * 2000), votes=1)}, repeats=1)
    (one,) = measured
    assert one.figures.won
    assert one.tokens > 0
    text = page([*measured, *measure({"rules": RulesJudge()}, repeats=1)])
    assert "Alpha between `gullible` and `rules`: " in text
    assert "(openai/judge-1)" in text


def test_the_calibration_set_fits_a_judge_that_knows_the_answers(serve, judge, tmp_path):
    """Gold values can be reached through the real path, by citing events that the rubric allows."""
    for number, sample in enumerate(samples(tmp_path)):
        if number % 9 not in (0, 5):
            continue
        events = citable(sample.material)

        def knowing(request, gold=sample.gold, events=events):
            own = {
                item: opinion(gold[item], [events[item]] if gold[item] else [])
                for item in asked_items(request)
            }
            return whole(json.dumps(verdict(request, events, 0, **own)))

        from evaluator.rubric import load_rubric

        judged = judge(serve(knowing), votes=1).judge(sample.material, load_rubric(sample.track), sample.tier)
        assert {item.id: item.value if item.applies else None for item in judged.items} == sample.gold


# --- explain ---


def test_explaining_walks_through_stages_items_codes_and_scores(finished_run):
    text = explain(finished_run())
    titles = ["S1 Plan", "S2 Setup", "S3 Validate", "S4 Inference", "S5 Submit", "Error codes", "Scores"]
    places = [text.index(title) for title in titles]
    assert places == sorted(places)
    assert "judge: rules" in text
    assert "plan_exists" in text
    assert 'event 3, turn 1: files: created "plan.md"' in text
    assert "outputs read back: case-00" in text
    assert "OVERALL" in text
    assert "62.5  TASK" in text
    assert all(line.isprintable() for line in text.splitlines())


def test_explaining_names_codes_with_their_events(finished_run):
    text = explain(finished_run(character="stuck"))
    assert "E2.dependency" in text
    assert "E5.missing_files" in text
    assert "No module named 'toolkit'" in text


def test_explaining_shows_votes_and_nulls(serve, judge, finished_run):
    folder = finished_run()
    events = citable(Run.load(folder, finished_run.data).material())

    def answer(request):
        own = {"plan_method": opinion(2, ["E3"])} if "plan_method" in asked_items(request) else {}
        return whole(json.dumps(verdict(request, events, **own)))

    list(rejudge_all([folder], finished_run.data, judge(serve(*[answer] * 9))))
    text = explain(folder)
    assert "judge: llm (openai/judge-1), 3 votes" in text
    assert "votes 1, 1, 1; agreement 100.0" in text
    assert re.search(r"null\s+plan_method", text)
    assert "S1 Plan: null" in text
    assert re.search(r"null\s+OVERALL", text)


@pytest.mark.parametrize(
    "evil", ["# Title\n<script>alert(1)</script>", "| a | b |\n`` ` ``", "\x1b[31mred\u202e"]
)
def test_markdown_shows_foreign_text_and_renders_none_of_it(finished_run, evil):
    folder = finished_run()
    trace = folder / "trace.jsonl"
    lines = []
    for line in trace.read_text().splitlines():
        event = json.loads(line)
        if event["type"] == "exec":
            event["output"] = f"{evil} (96, 128)\n{evil}\n"
        lines.append(json.dumps(event))
    trace.write_text("\n".join(lines) + "\n")
    page_ = explain(folder, markdown=True)
    assert page_.startswith("## ")
    assert page_.count("\n## ") == 7
    for line in page_.splitlines():
        assert line.isprintable()
        if "alert(1)" in line or "a | b" in line:
            assert re.search(r"(`+) .*(alert|a \| b).* \1$", line)


def test_a_run_without_a_record_cannot_be_explained(finished_run):
    folder = finished_run()
    (folder / "record.json").unlink()
    with pytest.raises(UsageProblem, match="record"):
        explain(folder)


def test_the_command_explains(finished_run):
    for more in ([], ["--markdown"]):
        done = subprocess.run(
            [sys.executable, "-m", "runner", "explain", str(finished_run(len(more))), *more],
            capture_output=True, text=True, cwd=REPOSITORY, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "S3 Validate: 100.0" in done.stdout
