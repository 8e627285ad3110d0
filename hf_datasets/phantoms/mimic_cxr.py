"""MIMIC-CXR with MIMIC-CXR-JPG in one tree: reports, JPEG files, and the split and metadata tables of PhysioNet.

All text is generated from what is drawn; no word of it is a patient's.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from PIL import Image

from hf_datasets.phantoms.chest_xray import Findings, deal, frontal, lateral
from hf_datasets.phantoms.marker import RealImage
from hf_datasets.phantoms.report_text import findings_text, impression_text
from hf_datasets.phantoms.shapes import Rng, rng_for

TEST, TRAIN = 8, 2
SPLIT_TABLE, METADATA_TABLE = "mimic-cxr-2.0.0-split.csv.gz", "mimic-cxr-2.0.0-metadata.csv.gz"
SPLIT_COLUMNS = ("dicom_id", "study_id", "subject_id", "split")
METADATA_COLUMNS = ("dicom_id", "subject_id", "study_id", "ViewPosition", "Rows", "Columns")


def generate(out: Path, seed: int) -> dict[str, RealImage]:
    """Write eight studies of the test split, one of them of impression only, and two of the training split."""
    rng = rng_for(seed, "mimic_cxr")
    subjects = sorted((10_000_000 + rng.choice(9_999_999, TEST + TRAIN + 1, replace=False)).tolist())
    numbers = (50_000_000 + rng.choice(9_999_999, len(subjects), replace=False)).tolist()
    splits = ["test"] * (TEST + 1) + ["train"] * TRAIN
    parts = [splits[index] for index in rng.permutation(len(splits))]
    short = parts.index("test")
    split_rows, metadata_rows = [], []
    for index, (subject, number, found) in enumerate(
        zip(subjects, numbers, deal(rng, len(subjects)), strict=True)
    ):
        views = _write_study(
            out, subject, number, found, rng_for(seed, "mimic_cxr", number), only_impression=index == short
        )
        for dicom, position, (rows, columns) in views:
            split_rows.append((dicom, number, subject, parts[index]))
            metadata_rows.append((dicom, subject, number, position, rows, columns))
    _write_table(out / SPLIT_TABLE, SPLIT_COLUMNS, split_rows)
    _write_table(out / METADATA_TABLE, METADATA_COLUMNS, metadata_rows)
    return {}


def _write_study(
    out: Path, subject: int, number: int, found: Findings, rng: Rng, *, only_impression: bool
) -> list[tuple[str, str, tuple[int, int]]]:
    """Write report and images of one study; return name, view position and size of each image."""
    patient = out / "files" / f"p{str(subject)[:2]}" / f"p{subject}"
    folder = patient / f"s{number}"
    folder.mkdir(parents=True)
    position = "PA" if rng.random() < 0.6 else "AP"
    pictures = [(position, frontal(found, rng))]
    if rng.random() < 0.6:
        pictures.append(("LATERAL", lateral(found, rng)))
    written = []
    for place in rng.permutation(len(pictures)):
        view, pixels = pictures[place]
        dicom = "-".join(f"{int(part):08x}" for part in rng.integers(0, 1 << 32, 5))
        Image.fromarray(pixels).save(folder / f"{dicom}.jpg", quality=95)
        written.append((dicom, view, pixels.shape))
    text = _report(position, len(pictures), found, rng, only_impression=only_impression)
    (patient / f"s{number}.txt").write_text(text, encoding="utf-8")
    return written


def _report(position: str, views: int, found: Findings, rng: Rng, *, only_impression: bool) -> str:
    technique = f"CHEST ({position} AND LAT)" if views == 2 else f"CHEST (PORTABLE {position})"
    parts = [
        f"EXAMINATION:  {technique}",
        f"INDICATION:  ___F with {'cough' if rng.random() < 0.5 else 'chest pain'}  // eval for pneumonia",
        f"TECHNIQUE:  {'Chest PA and lateral' if views == 2 else f'Single {position} view of the chest'}",
        "COMPARISON:  ___" if rng.random() < 0.5 else "COMPARISON:  None.",
    ]
    if not only_impression:
        parts.append(f"FINDINGS: \n \n{_wrapped(findings_text(found, rng))}")
    parts.append(f"IMPRESSION: \n \n{_wrapped(impression_text(found, rng))}")
    body = "\n \n".join(parts)
    return f"{'FINAL REPORT':>45}\n" + "".join(f" {line}\n" for line in body.split("\n"))


def _wrapped(text: str, width: int = 70) -> str:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)


def _write_table(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A gzipped table without a time, so that the same rows give the same bytes."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
