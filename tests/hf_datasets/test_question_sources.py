"""Eight question-answering upstreams: what their phantoms ask, what is staged, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pyarrow
import pyarrow.parquet as parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from hf_datasets.phantoms import make_phantom
from hf_datasets.phantoms.shapes import rng_for
from hf_datasets.phantoms.vqa import deck, histology, series
from hf_datasets.phantoms.vqa.deck import Card, deal
from hf_datasets.phantoms.vqa.endoscopy import Frame, Polyp
from hf_datasets.phantoms.vqa.scenes import Ask, Scene, brain_slice, film, scope, tissue
from hf_datasets.staging import stage
from hf_datasets.staging.vqa.question import lettered
from tasks.registry import load_task

CHOICE = (
    "medframeqa-task",
    "medxpertqa-mm-task",
    "vqa-omnimedvqa-task",
    "vqa-pmc-vqa-task",
    "vqa-mmmu-medical-task",
)
OPEN = ("pathvqa-task", "slake-task", "vqa-kvasir-task")
COUNT = {
    "pathvqa-task": 22,
    "slake-task": 30,
    "medframeqa-task": 24,
    "medxpertqa-mm-task": 27,
    "vqa-kvasir-task": 24,
    "vqa-omnimedvqa-task": 28,
    "vqa-pmc-vqa-task": 24,
    "vqa-mmmu-medical-task": 29,
}


@pytest.fixture(scope="module")
def raws(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("questions")
    for task_id in COUNT:
        make_phantom(task_id, root / task_id, seed=0)
    return root


@pytest.fixture(scope="module")
def staged(raws, tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("staged")
    for task_id in COUNT:
        stage(task_id, raws / task_id, root, release="phantom")
    return root / "phantom"


@pytest.fixture
def copied(raws, tmp_path) -> Callable[[str], Path]:
    return lambda task_id: Path(shutil.copytree(raws / task_id, tmp_path / "raw" / task_id))


def cases_of(staged: Path, task_id: str) -> list[tuple[dict[str, Any], dict[str, Any], Path]]:
    """Question, key and public folder of every case."""
    return [
        (
            json.loads((folder / "question.json").read_text()),
            json.loads((staged / task_id / "private" / folder.name / "answer.json").read_text()),
            folder,
        )
        for folder in sorted((staged / task_id / "public").iterdir())
    ]


# --- what is staged ---


@pytest.mark.parametrize("task_id", COUNT)
def test_questions_show_their_pictures_and_nothing_of_the_key(staged, task_id):
    cases = cases_of(staged, task_id)
    assert len(cases) == COUNT[task_id]
    for question, key, folder in cases:
        assert {path.name for path in folder.iterdir()} == {"question.json", *question["image_paths"]}
        assert question["question_id"] == key["question_id"] == folder.name
        allowed = {"question_id", "question", "image_paths"} | ({"options"} if task_id in CHOICE else set())
        assert set(question) == allowed
        for name in question["image_paths"]:
            with Image.open(folder / name) as picture:
                assert min(picture.size) >= 64


@pytest.mark.parametrize("task_id", CHOICE)
def test_keys_are_letters_of_the_question_and_balanced(staged, task_id):
    letters, four_or_more = Counter(), Counter()
    for question, key, _ in cases_of(staged, task_id):
        assert list(question["options"]) == list("ABCDE"[: len(question["options"])])
        assert len(set(question["options"].values())) == len(question["options"])
        assert key["answer"] in question["options"]
        assert key["options"] == question["options"]
        letters[key["answer"]] += 1
        four_or_more[key["answer"]] += len(question["options"]) >= 4
    assert max(letters.values()) <= 0.3 * letters.total()
    assert len(letters) == len(max((q["options"] for q, _, _ in cases_of(staged, task_id)), key=len))
    order = [key["answer"] for _, key, _ in cases_of(staged, task_id)]
    assert order != sorted(order)


@pytest.mark.parametrize("task_id", OPEN)
def test_open_questions_balance_yes_and_no(staged, task_id):
    keys = [key for _, key, _ in cases_of(staged, task_id)]
    closed = Counter(key["answer"].lower() for key in keys if key["answer_type"] == "closed")
    assert set(closed) == {"yes", "no"}
    assert abs(closed["yes"] - closed["no"]) <= 3
    assert 0.3 < closed.total() / len(keys) < 0.65


def test_one_picture_answers_one_question_differently_than_another(staged):
    """The words alone do not decide: a question that is asked twice has, somewhere, two answers."""
    for task_id in COUNT:
        answers: dict[str, set[str]] = {}
        for question, key, _ in cases_of(staged, task_id):
            words = question["options"][key["answer"]] if task_id in CHOICE else key["answer"]
            asked = question["question"].split("shown. ")[-1].split("Answer Choices")[0].lower()
            answers.setdefault(asked, set()).add(words)
        assert sum(len(different) > 1 for different in answers.values()) >= 2, task_id


def test_frames_keep_their_order(raws, staged):
    tables = [
        parquet.read_table(path).to_pylist() for path in sorted((raws / "medframeqa-task/data").iterdir())
    ]
    rows = {row["question_id"]: row for table in tables for row in table}
    manifest = json.loads((staged / "medframeqa-task/manifest.json").read_text())
    numbers = set()
    for case in manifest["cases"]:
        row = rows[case["origin"]]
        frames = [row[f"image_{n}"] for n in range(1, 6) if row[f"image_{n}"]]
        names = sorted(
            entry["path"].split("/")[1] for entry in case["public"] if entry["path"].endswith("png")
        )
        assert names == [f"image_{n + 1}.png" for n in range(len(frames))]
        numbers.add(len(frames))
        for name, frame in zip(names, frames, strict=True):
            mine = np.asarray(Image.open(staged / "medframeqa-task/public" / case["id"] / name))
            assert np.array_equal(mine, np.asarray(Image.open(io.BytesIO(frame["bytes"]))))
    assert len(numbers) >= 2


@pytest.mark.parametrize(
    ("task_id", "archive", "folder"),
    [
        ("medxpertqa-mm-task", "images.zip", "images"),
        ("vqa-pmc-vqa-task", "images.zip", "images"),
        ("slake-task", "imgs.zip", "imgs"),
    ],
)
def test_packed_and_unpacked_pictures_are_the_same(copied, staged, tmp_path, task_id, archive, folder):
    raw = copied(task_id)
    if (raw / archive).is_file():
        with ZipFile(raw / archive) as packed:
            packed.extractall(raw)
        (raw / archive).unlink()
    else:
        shutil.make_archive(str(raw / folder), "zip", raw, folder)
        shutil.rmtree(raw / folder)
    stage(task_id, raw, tmp_path / "again", release="phantom")
    first = {path.name: path for path in (staged / task_id / "public").iterdir()}
    for again in (tmp_path / "again/phantom" / task_id / "public").iterdir():
        for path in again.iterdir():
            assert path.read_bytes() == (first[again.name] / path.name).read_bytes()


def test_only_english_test_questions_of_slake(raws, staged):
    rows = json.loads((raws / "slake-task/test.json").read_text())
    assert {row["q_lang"] for row in rows} == {"en", "zh"}
    assert len(cases_of(staged, "slake-task")) == sum(row["q_lang"] == "en" for row in rows)


def test_open_questions_of_mmmu_are_left_out(raws, staged):
    rows = parquet.read_table(raws / "vqa-mmmu-medical-task/Pharmacy").to_pylist()
    assert "open" in {row["question_type"] for row in rows}
    sizes = {len(question["options"]) for question, _, _ in cases_of(staged, "vqa-mmmu-medical-task")}
    assert {2, 4, 5} <= sizes


def test_letters_before_pmc_choices_are_cut(staged):
    for question, _, _ in cases_of(staged, "vqa-pmc-vqa-task"):
        assert not any(words[1:2] == ":" for words in question["options"].values())


def test_a_rare_contradiction_of_omnimedvqa_is_left_out(copied, tmp_path):
    raw = copied("vqa-omnimedvqa-task")
    path = sorted((raw / "QA_information/Open-access").iterdir())[0]
    rows = json.loads(path.read_text())
    path.write_text(json.dumps(rows * 60 + [rows[0] | {"gt_answer": "none of them"}]))
    manifest = stage("vqa-omnimedvqa-task", raw, tmp_path / "data", release="phantom", limit=4)
    assert manifest.provenance["cases"] == f"4 of {28 + 59 * len(rows)}"


@pytest.mark.parametrize("task_id", COUNT)
def test_a_limit_draws_the_same_questions_whatever_else_is_there(raws, tmp_path, task_id):
    few = stage(task_id, raws / task_id, tmp_path / "few", release="phantom", limit=3)
    again = stage(task_id, raws / task_id, tmp_path / "again", release="phantom", limit=3)
    assert [case.origin for case in few.cases] == [case.origin for case in again.cases]
    assert len(few.cases) == 3


# --- what is drawn ---


def test_a_brain_shows_its_lesion_where_the_key_says():
    for index in range(6):
        side = ("right", "left")[index % 2]
        healthy = brain_slice(rng_for(index), "T2", ()).frames[0].astype(float)
        found = brain_slice(rng_for(index), "T2", (side,))
        quarter = next(ask.answer for ask in found.asks if "quarter" in ask.question)
        changed = np.argwhere(np.abs(found.frames[0].astype(float) - healthy) > 60).mean(axis=0)
        assert (changed[1] < healthy.shape[1] / 2) == (side == "right")
        assert quarter == f"{'front' if changed[0] < healthy.shape[0] / 2 else 'back'} {side}"


def test_polyps_lie_in_the_ninth_that_is_named():
    for at, place in {(-0.6, -0.6): "upper-left", (0.0, 0.0): "center", (0.6, 0.0): "center-right"}.items():
        plain = scope(rng_for(1), Frame()).frames[0].astype(float)
        shown = scope(rng_for(1), Frame((Polyp(at, 0.2),)))
        assert next(ask.answer for ask in shown.asks if ask.question.startswith("Where")) == place
        rows, columns = np.argwhere(np.abs(shown.frames[0].astype(float) - plain).sum(axis=2) > 150).mean(
            axis=0
        )
        assert round(3 * rows / plain.shape[0] - 0.5) == round(1.5 * (at[1] + 1) - 0.5)
        assert round(3 * columns / plain.shape[1] - 0.5) == round(1.5 * (at[0] + 1) - 0.5)


def test_tissues_have_their_colours():
    fat = tissue(rng_for(2), histology.Tile("adipose")).frames[0]
    muscle = tissue(rng_for(2), histology.Tile("muscle")).frames[0]
    brown = tissue(rng_for(2), histology.Tile("muscle", immunostain=True)).frames[0].astype(int)
    assert (fat.min(axis=2) > 225).mean() > 0.5 > 0.02 > (muscle.min(axis=2) > 225).mean()
    assert ((brown[..., 0] - brown[..., 2]) > 40).mean() > 0.005


def test_courses_show_what_they_say():
    for change, shown in {series.CHANGES[0]: (False, True), series.CHANGES[1]: (True, False)}.items():
        frames = series.films(rng_for(3), "pneumothorax", change).frames
        clear = film(rng_for(3), None).frames[0]
        darkest = [np.percentile(frame[60:120, 15:-15], 3) for frame in (frames[0], frames[-1])]
        assert clear.ndim == 2
        assert (darkest[1] < darkest[0]) == shown[1]


SCENE = Scene((np.zeros((2, 2), np.uint8),), "none", "none", ())


@given(st.lists(st.integers(1, 6), min_size=1, max_size=40), st.integers(2, 5), st.integers(0, 99))
def test_dealt_options_hold_the_answer_once_under_its_letter(wrong, most, seed):
    cards = [Card(SCENE, Ask("k", "q?", "right", tuple(f"wrong {n}" for n in range(n)))) for n in wrong]
    dealt = deal(cards, most, rng_for(seed))
    for card, each in zip(cards, dealt, strict=True):
        assert len(each.options) == min(most, len(card.ask.others) + 1)
        assert [letter for letter, words in each.options.items() if words == "right"] == [each.letter]
        assert list(each.options) == list(deck.LETTERS[: len(each.options)])
    if min(wrong) + 1 >= most:
        counts = Counter(each.letter for each in dealt)
        assert max(counts.values()) - min(counts[letter] for letter in deck.LETTERS[:most]) <= 1


@given(st.lists(st.text("abc ", min_size=1).filter(str.strip), min_size=2, max_size=6))
def test_three_written_forms_of_options_are_one(words):
    letters = "ABCDEF"[: len(words)]
    as_list = lettered(Path("t"), "q", words)
    assert lettered(Path("t"), "q", dict(zip(letters, words, strict=True))) == as_list
    pairs = [{"letter": letter, "content": text} for letter, text in zip(letters, words, strict=True)]
    assert lettered(Path("t"), "q", pairs[::-1]) == as_list
    assert list(as_list) == list(letters)


# --- what is refused ---


def cut(path: Path, keep: float = 0.6) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep)])


def edit_table(path: Path, change: Callable[[list[dict[str, Any]]], object], drop: str = "") -> None:
    table = parquet.read_table(path)
    rows = table.to_pylist()
    change(rows)
    edited = pyarrow.Table.from_pylist(rows, schema=table.schema)
    parquet.write_table(edited.drop_columns([drop]) if drop else edited, path)


def edit_json(path: Path, change: Callable[[list[dict[str, Any]]], object]) -> None:
    rows = json.loads(path.read_text())
    change(rows)
    path.write_text(json.dumps(rows))


def edit_lines(path: Path, change: Callable[[list[dict[str, Any]]], object]) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    change(rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def edit_csv(path: Path, change: Callable[[list[dict[str, Any]]], object]) -> None:
    with path.open(newline="") as handle:
        reader = csv.DictReader(handle)
        rows = list(reader)
    change(rows)
    with path.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, reader.fieldnames or ())
        writer.writeheader()
        writer.writerows(rows)


def swap_rows(rows: list[dict[str, Any]], *keys: str) -> None:
    """Exchange fields of the first row with another row that holds other values."""
    other = next(row for row in rows if all(row[key] != rows[0][key] for key in keys))
    for key in keys:
        rows[0][key], other[key] = other[key], rows[0][key]


def spoil_picture(path: Path, column: str = "image") -> None:
    def change(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            row[column]["bytes"] = row[column]["bytes"][:300]

    edit_table(path, change)


def without(raw: Path, archive: str, end: int = 1) -> None:
    """Write the archive again without its last members."""
    with ZipFile(raw / archive) as packed:
        kept = {name: packed.read(name) for name in packed.namelist()[:-end]}
    with ZipFile(raw / archive, "w") as packed:
        for name, content in kept.items():
            packed.writestr(name, content)


def damaged_member(path: Path) -> None:
    """Change bytes inside the first picture; its checksum then is wrong."""
    content = bytearray(path.read_bytes())
    content[400:420] = bytes(20)
    path.write_bytes(bytes(content))


PATH, SLAKE, FRAMES, EXPERT = "data/test-00000-of-00002.parquet", "test.json", "data", "MM/test.jsonl"
FIRST = "data/test-00000-of-00002.parquet"
KVASIR, PMC, MMMU = "data/00000.parquet", "test_clean.csv", "Pharmacy/validation-00000-of-00001.parquet"
OMNI = "QA_information/Open-access"
Damage = tuple[Callable[[Path], object], str]


def first_of(folder: Path) -> Path:
    return sorted(folder.iterdir())[0]


DAMAGES: dict[str, dict[str, Damage]] = {
    "pathvqa-task": {
        "missing shard": (lambda raw: (raw / PATH).unlink(), "expected all 2 shards"),
        "no shards": (lambda raw: shutil.rmtree(raw / "data"), "expected data/test-*.parquet"),
        "extra file": (lambda raw: (raw / "data/answers.csv").write_text("x"), "unexpected answers.csv"),
        "truncated table": (lambda raw: cut(raw / PATH), "not a complete parquet file"),
        "missing column": (lambda raw: edit_table(raw / PATH, list, "answer"), "expected the columns answer"),
        "no answer": (
            lambda raw: edit_table(raw / PATH, lambda rows: rows[0].update(answer=" ")),
            "expected a text as answer of row 0",
        ),
        "missing picture": (
            lambda raw: edit_table(raw / PATH, lambda rows: rows[0].update(image=None)),
            "expected a picture in row 0",
        ),
        "truncated picture": (lambda raw: spoil_picture(raw / PATH), "not a complete picture"),
    },
    "slake-task": {
        "missing table": (lambda raw: (raw / SLAKE).unlink(), "expected test.json"),
        "truncated table": (lambda raw: cut(raw / SLAKE), "not complete JSON"),
        "missing pictures": (lambda raw: shutil.rmtree(raw / "imgs"), "expected the pictures in imgs/ or"),
        "missing picture": (
            lambda raw: (first_of(raw / "imgs") / "source.jpg").unlink(),
            "expected the pictures that questions name",
        ),
        "swapped ids": (
            lambda raw: edit_json(raw / SLAKE, lambda rows: [swap_rows(rows, "img_id")]),
            "to agree with img_id",
        ),
        "repeated id": (
            lambda raw: edit_json(raw / SLAKE, lambda rows: [row.update(qid=1) for row in rows]),
            "each question id once",
        ),
        "truncated picture": (
            lambda raw: [cut(path) for path in (raw / "imgs").rglob("*.jpg")],
            "not a complete picture",
        ),
        "path outside": (
            lambda raw: edit_json(
                raw / SLAKE,
                lambda rows: [
                    row.update(img_name=f"xmlab{row['img_id']}/../../../etc/passwd") for row in rows
                ],
            ),
            "expected the pictures that questions name",
        ),
        "no English part": (
            lambda raw: edit_json(raw / SLAKE, lambda rows: [row.update(q_lang="zh") for row in rows]),
            "expected questions with q_lang en",
        ),
    },
    "medframeqa-task": {
        "missing shard": (lambda raw: (raw / FIRST).unlink(), "expected all 2 shards"),
        "truncated table": (lambda raw: cut(raw / FIRST, 0.9), "not a complete parquet file"),
        "missing frame": (
            lambda raw: edit_table(raw / FIRST, lambda rows: rows[0].update(image_1=None)),
            "expected a picture in row 0, column image_1",
        ),
        "repeated id": (
            lambda raw: edit_table(
                raw / FIRST, lambda rows: rows[0].update(question_id=rows[1]["question_id"])
            ),
            "each question id once",
        ),
        "answer of another question": (
            lambda raw: edit_table(raw / FIRST, lambda rows: rows[0].update(correct_answer="F")),
            "expected one of A, B",
        ),
        "one option": (
            lambda raw: edit_table(raw / FIRST, lambda rows: rows[0].update(options=["it is"])),
            "expected options A, B, ...",
        ),
        "extra file": (lambda raw: (raw / "data/video.mp4").write_text("x"), "unexpected video.mp4"),
    },
    "medxpertqa-mm-task": {
        "missing part": (lambda raw: (raw / "MM/dev.jsonl").unlink(), "expected dev.jsonl"),
        "truncated lines": (lambda raw: cut(raw / EXPERT), "is not complete JSON"),
        "truncated archive": (lambda raw: cut(raw / "images.zip"), "not a complete ZIP archive"),
        "damaged member": (lambda raw: damaged_member(raw / "images.zip"), "cannot be unpacked"),
        "missing picture": (
            lambda raw: without(raw, "images.zip"),
            "expected the pictures that questions name",
        ),
        "swapped ids": (
            lambda raw: edit_lines(raw / EXPERT, lambda rows: swap_rows(rows, "images")),
            "to be named after it",
        ),
        "repeated id": (
            lambda raw: edit_lines(raw / EXPERT, lambda rows: rows.append(rows[0])),
            "each question id once",
        ),
        "no label": (
            lambda raw: edit_lines(raw / EXPERT, lambda rows: rows[0].update(label="")),
            "expected one of A, B",
        ),
    },
    "vqa-kvasir-task": {
        "no tables": (lambda raw: shutil.rmtree(raw / "data"), "expected data/*.parquet"),
        "truncated table": (lambda raw: cut(raw / KVASIR), "not a complete parquet file"),
        "missing column": (
            lambda raw: edit_table(raw / KVASIR, list, "img_id"),
            "expected the columns img_id",
        ),
        "no question": (
            lambda raw: edit_table(raw / KVASIR, lambda rows: rows[2].update(question=None)),
            "expected a text as question of row 2",
        ),
        "missing picture": (
            lambda raw: edit_table(raw / KVASIR, lambda rows: rows[0].update(image=None)),
            "expected a picture in row 0",
        ),
        "extra file": (lambda raw: (raw / "data/metadata.csv").write_text("x"), "unexpected metadata.csv"),
    },
    "vqa-omnimedvqa-task": {
        "no tables": (lambda raw: shutil.rmtree(raw / OMNI), "expected QA_information/Open-access/*.json"),
        "truncated table": (lambda raw: cut(first_of(raw / OMNI)), "not complete JSON"),
        "missing pictures": (
            lambda raw: shutil.rmtree(raw / "Images/Drawn CT"),
            "expected the pictures that questions name",
        ),
        "answers of other questions": (
            lambda raw: edit_json(
                first_of(raw / OMNI), lambda rows: [row.update(gt_answer="something else") for row in rows]
            ),
            "expected gt_answer among its options",
        ),
        "extra file": (lambda raw: (raw / OMNI / "readme.txt").write_text("x"), "unexpected readme.txt"),
        "path outside": (
            lambda raw: edit_json(
                first_of(raw / OMNI), lambda rows: rows[0].update(image_path="/etc/passwd")
            ),
            "below Images/",
        ),
        "no options": (
            lambda raw: edit_json(
                first_of(raw / OMNI),
                lambda rows: [rows[0].pop(f"option_{letter}", None) for letter in "ABCD"],
            ),
            "expected options A, B",
        ),
    },
    "vqa-pmc-vqa-task": {
        "missing table": (lambda raw: (raw / PMC).unlink(), "expected test_clean.csv"),
        "truncated archive": (lambda raw: cut(raw / "images.zip"), "not a complete ZIP archive"),
        "missing picture": (
            lambda raw: without(raw, "images.zip"),
            "expected the pictures that questions name",
        ),
        "swapped choices": (
            lambda raw: edit_csv(
                raw / PMC,
                lambda rows: rows[0].update(
                    {"Choice A": rows[0]["Choice B"], "Choice B": rows[0]["Choice A"]}
                ),
            ),
            "expected Choice A of row 0, found that of B",
        ),
        "missing column": (
            lambda raw: (raw / PMC).write_text((raw / PMC).read_text().replace("Answer_label", "Label", 1)),
            "expected the columns Answer_label",
        ),
        "label that is no choice": (
            lambda raw: edit_csv(raw / PMC, lambda rows: rows[0].update(Answer_label="E")),
            "expected one of A, B, C, D",
        ),
        "truncated row": (
            lambda raw: (raw / PMC).write_text((raw / PMC).read_text().rstrip().rsplit(",", 3)[0]),
            "found another number",
        ),
    },
    "vqa-mmmu-medical-task": {
        "missing subject": (lambda raw: shutil.rmtree(raw / "Pharmacy"), "expected Pharmacy/validation"),
        "truncated table": (lambda raw: cut(raw / MMMU), "not a complete parquet file"),
        "options that are no list": (
            lambda raw: edit_table(raw / MMMU, lambda rows: rows[0].update(options="['a', ")),
            "expected a list of options",
        ),
        "options that are code": (
            lambda raw: edit_table(
                raw / MMMU, lambda rows: rows[0].update(options="__import__('os').getcwd()")
            ),
            "expected a list of options",
        ),
        "hidden answer": (
            lambda raw: edit_table(raw / MMMU, lambda rows: rows[0].update(answer="?")),
            "expected one of A, B",
        ),
        "repeated id": (
            lambda raw: edit_table(raw / MMMU, lambda rows: rows[0].update(id=rows[1]["id"])),
            "each question id once",
        ),
        "missing picture": (
            lambda raw: edit_table(raw / MMMU, lambda rows: rows[0].update(image_1=None)),
            "expected a picture in row 0",
        ),
    },
}


@pytest.mark.parametrize(
    ("task_id", "damage", "words"),
    [
        pytest.param(task_id, damage, words, id=f"{task_id}: {name}")
        for task_id, damages in DAMAGES.items()
        for name, (damage, words) in damages.items()
    ],
)
def test_a_damaged_source_is_refused_whole(task_id, damage, words, copied, tmp_path, staging_refusal):
    raw = copied(task_id)
    damage(raw)
    assert words in staging_refusal(task_id, raw, tmp_path / "data")


@pytest.mark.parametrize("task_id", COUNT)
def test_measured_baselines_stand_in_order(task_id):
    measured = load_task(task_id).baselines["phantom"]
    assert 0 < measured.trivial < measured.strong < 1
