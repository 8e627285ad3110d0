"""MIMIC-CXR, CheXpert Plus and PathCap: what is drawn and said, what is staged, and what is refused."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from hf_datasets.phantoms.pathcap import caption_of
from hf_datasets.phantoms.shapes import rng_for
from hf_datasets.phantoms.vqa.histology import Tile
from hf_datasets.staging import stage
from hf_datasets.staging.mimic_cxr import findings_of
from tasks.registry import load_task

MIMIC, CHEXPERT = "mimic-cxr-report-task", "chexpert-plus-cxr-task"
CAPTIONS = ("pathology-caption-100-task", "pathology-caption-500-task")
ALL = (MIMIC, CHEXPERT, *CAPTIONS)
SPLIT, METADATA = "mimic-cxr-2.0.0-split.csv.gz", "mimic-cxr-2.0.0-metadata.csv.gz"
TABLE = "df_chexpert_plus_240401.csv"


def rewrite_gz(path: Path, change: Callable[[str], str]) -> None:
    path.write_bytes(gzip.compress(change(gzip.decompress(path.read_bytes()).decode()).encode()))


def rewrite_rows(path: Path, change: Callable[[list[dict[str, str]]], object]) -> None:
    with path.open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    change(rows)
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def rewrite_records(raw: Path, change: Callable[[list[dict[str, object]]], object]) -> None:
    records = json.loads((raw / "PathCap.json").read_text())
    change(records)
    (raw / "PathCap.json").write_text(json.dumps(records))


def cut(path: Path, share: float = 0.5) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])


def staged_studies(raw: Path) -> list[Path]:
    """Folders of the studies of the test split that are staged, in order."""
    rows = csv.DictReader(gzip.decompress((raw / SPLIT).read_bytes()).decode().splitlines())
    numbers = {f"s{row['study_id']}" for row in rows if row["split"] == "test"}
    folders = [path for path in sorted(raw.glob("files/p*/p*/s*")) if path.name in numbers and path.is_dir()]
    return [path for path in folders if "FINDINGS" in path.with_suffix(".txt").read_text()]


def first_image(raw: Path) -> Path:
    return sorted(staged_studies(raw)[0].iterdir())[0]


# --- texts ---


@pytest.mark.parametrize(
    ("report", "findings"),
    [
        (" FINDINGS: \n \n Heart is\n normal.\n \n IMPRESSION: \n Fine.\n", "Heart is normal."),
        (" FINDINGS:  Clear lungs.\n", "Clear lungs."),
        (" EXAMINATION:  CHEST (PA AND LAT)\n\n IMPRESSION:  No change since ___.\n", ""),
        (
            " COMPARISON:  ___\n FINDINGS: As compared to ___, stable.\n NOTIFICATION:  Dr. ___",
            "As compared to, stable.",
        ),
        ("FINAL REPORT\n INDICATION: FINDINGS of old\n", ""),
        (" FINDINGS: ___\n", ""),
        ("", ""),
    ],
)
def test_findings_lie_between_their_heading_and_the_next(report, findings):
    assert findings_of(report) == findings


@given(st.text(max_size=300))
def test_any_report_gives_one_tidy_line(report):
    findings = findings_of(f"{report}\n FINDINGS: {report}")
    assert "\n" not in findings
    assert "__" not in findings
    assert findings == findings.strip()


@given(
    st.builds(
        Tile,
        st.sampled_from(["glandular", "adipose", "muscle"]),
        glands=st.integers(1, 4),
        infiltrate=st.booleans(),
        vessel=st.booleans(),
        immunostain=st.booleans(),
    ),
    st.integers(0, 9),
)
def test_a_caption_says_what_is_drawn_and_nothing_else(tile, seed):
    said = caption_of(tile, rng_for(seed)).lower()
    assert ("gland" in said) == (tile.tissue == "glandular")
    assert ("adipose" in said) == (tile.tissue == "adipose")
    assert ("muscle" in said) == (tile.tissue == "muscle")
    assert ("dense" in said) == tile.infiltrate
    assert ("vessel" in said) == tile.vessel
    assert ("dab" in said) == tile.immunostain


# --- staging ---


@pytest.mark.parametrize("task_id", ALL)
def test_each_case_has_its_images_and_a_report_that_may_be_delivered(task_id, staged_root, manifest_of):
    output = load_task(task_id).output
    views = set()
    for case in manifest_of(task_id).cases:
        public, private = (staged_root / task_id / side / case.id for side in ("public", "private"))
        names = json.loads((public / "manifest.json").read_text())["image_files"]
        assert sorted(path.name for path in (public / "images").iterdir()) == [
            Path(name).name for name in names
        ]
        views.add(len(names))
        text = (private / "report.txt").read_text().strip()
        assert output.min_chars <= len(text) <= output.max_chars
        assert "___" not in text
        assert (
            list(json.loads((private / "labels.json").read_text())["sections"].values()) == text.splitlines()
        )
    assert views == ({1, 2} if task_id == MIMIC else {1})


def test_only_findings_of_the_test_split_are_staged(raw_phantoms, manifest_of, staged_root):
    raw = raw_phantoms / MIMIC
    assert sorted(case.origin for case in manifest_of(MIMIC).cases) == sorted(
        path.name for path in staged_studies(raw)
    )
    for path in (staged_root / MIMIC / "private").rglob("labels.json"):
        labels = json.loads(path.read_text())
        assert list(labels["sections"]) == ["findings"]
        assert labels["views"][0] in ("PA", "AP")


def test_the_two_projects_may_lie_side_by_side(raw_copy, tmp_path):
    raw = raw_copy(MIMIC)
    for name in ("mimic-cxr", "mimic-cxr-jpg"):
        shutil.copytree(raw / "files", raw / name / "files")
    for table in (SPLIT, METADATA):
        (raw / table).rename(raw / "mimic-cxr-jpg" / table)
    shutil.rmtree(raw / "files")
    assert len(stage(MIMIC, raw, tmp_path / "data", release="phantom").cases) == 8


def test_studies_that_were_not_downloaded_are_passed_over(raw_copy, tmp_path):
    raw = raw_copy(MIMIC)
    gone = staged_studies(raw)[0]
    shutil.rmtree(gone)
    gone.with_suffix(".txt").unlink()
    cases = stage(MIMIC, raw, tmp_path / "data", release="phantom").cases
    assert len(cases) == 7
    assert gone.name not in {case.origin for case in cases}


def test_jpeg_images_of_chexpert_will_do_and_short_reports_are_left_out(raw_copy, tmp_path):
    raw = raw_copy(CHEXPERT)
    for path in (raw / "PNG").rglob("*.png"):
        with Image.open(path) as image:
            image.save(path.with_suffix(".jpg"))
        path.unlink()

    def shorten(rows):
        study = next(row["path_to_image"] for row in rows if row["split"] == "valid").rsplit("/", 1)[0]
        for row in rows:
            if row["path_to_image"].startswith(study):
                row.update(section_findings="", section_impression="Normal chest.")

    rewrite_rows(raw / TABLE, shorten)
    assert len(stage(CHEXPERT, raw, tmp_path / "data", release="phantom").cases) == 7


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_captions_may_come_as_lines_or_as_csv(form, raw_copy, tmp_path, staged_root):
    raw = raw_copy(CAPTIONS[0])
    records = json.loads((raw / "PathCap.json").read_text())
    (raw / "PathCap.json").unlink()
    if form == "jsonl":
        lines = (json.dumps({"img_id": r["image"][:-4], "text": r["caption"]}) for r in records)
        (raw / "captions.jsonl").write_text("\n".join(lines))
    else:
        with (raw / "captions.csv").open("w", newline="") as handle:
            csv.writer(handle).writerows([("file_name", "caption"), *(r.values() for r in records)])
    manifest = stage(CAPTIONS[0], raw, tmp_path / "data", release="phantom")
    for case in manifest.cases:
        ours, theirs = (root / "private" / case.id / "report.txt" for root in (
            tmp_path / "data" / "phantom" / CAPTIONS[0], staged_root / CAPTIONS[0]))  # fmt: skip
        assert ours.read_text() == theirs.read_text()


# --- damage ---

MIMIC_DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing report": (
        lambda raw: staged_studies(raw)[0].with_suffix(".txt").unlink(),
        "expected the report of s",
    ),
    "missing folder": (lambda raw: shutil.rmtree(staged_studies(raw)[0]), "expected the images of s"),
    "missing image": (lambda raw: first_image(raw).unlink(), f"listed in {SPLIT} but not there"),
    "extra image": (
        lambda raw: shutil.copy(first_image(raw), first_image(raw).with_name("copy.jpg")),
        "unexpected copy.jpg",
    ),
    "truncated image": (lambda raw: cut(first_image(raw)), "not a complete picture"),
    "other size": (lambda raw: Image.new("L", (30, 30)).save(first_image(raw)), "expected 304x336 pixels"),
    "swapped ids": (
        lambda raw: rewrite_gz(
            raw / METADATA,
            lambda text: text.replace(staged_studies(raw)[0].name[1:], staged_studies(raw)[1].name[1:]),
        ),
        "found subject",
    ),
    "image without metadata": (
        lambda raw: rewrite_gz(raw / METADATA, lambda text: text.replace(first_image(raw).stem, "x")),
        "found no such row",
    ),
    "truncated table": (lambda raw: cut(raw / SPLIT), "not a complete table"),
    "missing table": (lambda raw: (raw / METADATA).unlink(), "expected this table"),
    "other columns": (
        lambda raw: rewrite_gz(raw / SPLIT, lambda text: text.replace("study_id", "study")),
        "expected the columns study_id",
    ),
    "no test split": (
        lambda raw: rewrite_gz(raw / SPLIT, lambda text: text.replace(",test", ",train")),
        "expected rows with split test",
    ),
    "no findings": (
        lambda raw: [
            path.write_text(path.read_text().replace("FINDINGS:", "NOTE:"))
            for path in raw.glob("files/*/*/*.txt")
        ],
        "found none of 9",
    ),
    "nothing of it": (lambda raw: shutil.rmtree(raw / "files"), "expected mimic-cxr/files/ or files/"),
}


def valid_image(raw: Path) -> Path:
    return sorted((raw / "PNG" / "valid").glob("*/*/view1_frontal.png"))[0]


CHEXPERT_DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing table": (lambda raw: (raw / TABLE).unlink(), "expected this table"),
    "missing image": (lambda raw: valid_image(raw).unlink(), "expected this image as .png or .jpg"),
    "missing folder": (lambda raw: shutil.rmtree(raw / "PNG"), "expected PNG/ or"),
    "truncated image": (lambda raw: cut(valid_image(raw)), "not a complete picture"),
    "truncated table": (lambda raw: cut(raw / TABLE, 0.6), "expected 15 fields in row"),
    "another side": (
        lambda raw: rewrite_rows(raw / TABLE, lambda rows: rows[0].update(frontal_lateral="Lateral")),
        "expected frontal as frontal_lateral",
    ),
    "odd path": (
        lambda raw: rewrite_rows(raw / TABLE, lambda rows: rows[0].update(path_to_image="valid/../secret.jpg")),
        "expected a path such as",
    ),
    "two reports": (
        lambda raw: rewrite_rows(
            raw / TABLE,
            lambda rows: next(row for row in rows if row["frontal_lateral"] == "Lateral" and row["split"] == "valid")
            .update(section_impression="Another patient's text."),
        ),
        "expected one report for all images",
    ),
    "no valid part": (
        lambda raw: rewrite_rows(
            raw / TABLE,
            lambda rows: [row.update(path_to_image=row["path_to_image"].replace("valid", "train")) for row in rows],
        ),
        "expected frontal images below valid/",
    ),
}  # fmt: skip


def picture(raw: Path) -> Path:
    return sorted((raw / "images").iterdir())[0]


PATHCAP_DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing picture": (lambda raw: picture(raw).unlink(), "found no such pictures among 11"),
    "missing folder": (lambda raw: shutil.rmtree(raw / "images"), "expected pictures in a folder"),
    "truncated picture": (lambda raw: cut(picture(raw)), "not a complete picture"),
    "truncated table": (lambda raw: cut(raw / "PathCap.json"), "not complete JSON"),
    "no table": (lambda raw: (raw / "PathCap.json").unlink(), "expected one table of captions"),
    "extra table": (lambda raw: (raw / "other.csv").write_text("a"), "found PathCap.json, other.csv"),
    "picture twice": (
        lambda raw: (raw / "more").mkdir() or shutil.copy(picture(raw), raw / "more"),
        "expected each picture once",
    ),
    "two captions": (
        lambda raw: rewrite_records(raw, lambda records: records.append(records[0])),
        "expected one caption a picture",
    ),
    "no caption": (
        lambda raw: rewrite_records(raw, lambda records: records[0].pop("caption")),
        "expected one of caption, text in row 1",
    ),
    "caption that is no text": (
        lambda raw: rewrite_records(raw, lambda records: records[0].update(caption=7)),
        "expected a text as caption in row 1, found 7",
    ),
}

DAMAGES = [
    pytest.param(task_id, damage, words, id=f"{task_id.split('-')[0]}: {name}")
    for task_id, damages in (
        (MIMIC, MIMIC_DAMAGE),
        (CHEXPERT, CHEXPERT_DAMAGE),
        (CAPTIONS[0], PATHCAP_DAMAGE),
    )
    for name, (damage, words) in damages.items()
]


@pytest.mark.parametrize(("task_id", "damage", "words"), DAMAGES)
def test_a_damaged_source_is_refused_in_one_line(task_id, damage, words, raw_copy, tmp_path, staging_refusal):
    raw = raw_copy(task_id)
    damage(raw)
    assert words in staging_refusal(task_id, raw, tmp_path / "data")
