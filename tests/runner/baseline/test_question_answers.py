"""The scripted answers to questions: options, several pictures, and looks other than a chest film."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from tasks.registry import load_task
from tasks.schema import Release

ANSWER = {"files": ["answer.json"]}
TASKS = (
    "vqa-rad-task",
    "pathvqa-task",
    "slake-task",
    "medframeqa-task",
    "medxpertqa-mm-task",
    "vqa-kvasir-task",
    "vqa-omnimedvqa-task",
    "vqa-pmc-vqa-task",
    "vqa-mmmu-medical-task",
)


def spot(path, at=None):
    """A grey oval like a head, and one bright spot in it."""
    y, x = np.mgrid[-1:1:120j, -1:1:120j]
    picture = np.where((x / 0.75) ** 2 + (y / 0.9) ** 2 < 1, 90.0, 0.0)
    picture[(np.abs(x) < 0.08) & (np.abs(y) < 0.3)] = 230
    if at is not None:
        picture[(x - at) ** 2 + (y - 0.1) ** 2 < 0.014] = 230
    Image.fromarray(picture.astype(np.uint8)).save(path)


@pytest.fixture
def asked(script, tmp_path):
    """Answer a question to heads with bright spots at these places."""

    def ask(question, spots, options=None):
        vqa = script("vqa")
        names = [f"image_{index}.png" for index in range(len(spots))]
        for name, at in zip(names, spots, strict=True):
            spot(tmp_path / name, at)
        content = {"question_id": tmp_path.name, "question": question, "image_paths": names}
        (tmp_path / "question.json").write_text(
            json.dumps(content | ({"options": options} if options else {}))
        )
        item = vqa.load(tmp_path, ANSWER)
        vqa.save(vqa.METHODS["rules"](item), tmp_path, ANSWER)
        assert vqa.inspect(item, tmp_path, ANSWER, show=lambda *_: None) == []
        return json.loads((tmp_path / "answer.json").read_text())

    return ask


@pytest.mark.parametrize(
    ("question", "spots", "answer"),
    [
        ("Is a lesion seen?", [None], "no"),
        ("Is a lesion seen?", [0.45], "yes"),
        ("On which side is the lesion?", [-0.45], "right"),
        ("How many lesions are seen?", [-0.45], "1"),
        ("Which of the 3 frames shows a lesion?", [None, None, 0.45], "frame 3"),
        ("In how many of the 3 frames is a lesion seen?", [0.45, None, -0.45], "2"),
        ("How does the lesion change from the first to the last frame?", [None, 0.45], "appears"),
        ("How does the lesion change from the first to the last frame?", [0.45, -0.45], "changes side"),
        ("Does the cerebrospinal fluid look bright or dark?", [None], "bright"),
    ],
)
def test_frames_are_compared(asked, question, spots, answer):
    assert asked(question, spots)["predicted_answer"] == answer


def test_the_letter_of_the_nearest_option_is_delivered(asked):
    history = "A man of 40 years with a lesion elsewhere. The image is shown. On which side is the lesion?"
    options = {"A": "left", "B": "both sides", "C": "right"}
    choices = "\nAnswer Choices: (A) left (B) both sides (C) right"
    answer = asked(history + choices, [-0.45], options)
    assert (answer["predicted_label"], answer["predicted_answer"]) == ("C", "right")


def test_a_letter_is_delivered_where_nothing_is_measured(asked):
    answer = asked("What is the dose of the drug?", [None], {"A": "5 mg", "B": "10 mg"})
    assert answer["predicted_label"] in ("A", "B")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("<image 1> Which eye is <image 2>?", "which eye is ?"),
        ("Seen before. Is it? Where is it?", "where is it?"),
        ("Name the organ.", "name the organ."),
        ("A history. What now? Answer Choices: (A) Why? (B) Who?", "what now?"),
    ],
)
def test_only_what_is_asked_is_read(script, text, kept):
    assert script("vqa").last_question(text) == kept


def test_a_panel_is_cut_out_by_its_side(script):
    figure = np.full((40, 108, 3), 255, np.float32)
    figure[:30, :50], figure[:, 58:] = 10, 90
    looks = script("looks")
    assert looks.panel_of(figure, "what is the panel on the left?").shape == (30, 50, 3)
    assert (looks.panel_of(figure, "what is the panel on the right?") == 90).all()
    assert looks.panel_of(figure, "what is this?").shape == figure.shape


@pytest.mark.slow
@pytest.mark.parametrize("task_id", TASKS)
def test_rules_reach_the_declared_score(script, tmp_path, task_id, staged_phantom):
    from evaluator.score import score
    from tasks.manifest import load_manifest

    vqa, data = script("vqa"), staged_phantom(task_id)
    for case in sorted((data / "public").iterdir()):
        (tmp_path / "out" / case.name).mkdir(parents=True)
        vqa.save(vqa.METHODS["rules"](vqa.load(case, ANSWER)), tmp_path / "out" / case.name, ANSWER)
    task = load_task(task_id)
    report = score(task, tmp_path / "out", data / "private", data / "public", load_manifest(data), 1)
    assert report.all_valid
    assert report.task_score == pytest.approx(task.baselines[Release.PHANTOM].strong, abs=0.04)
