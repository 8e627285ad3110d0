"""ISIC 2018, task 3: ``ISIC2018_Task3_Test_Input/ISIC_<n>.jpg`` and a CSV of one column a class in the folder beside.

The test part, because the models that agents may use were taught on HAM10000, which is the training part.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hf_datasets.staging.base import StagingError, folder_at, some
from hf_datasets.staging.csv_rows import rows_of
from hf_datasets.staging.labelled import IMAGE_NOTE, LabelledFile

PICTURES, TRUTH = "ISIC2018_Task3_Test_Input", "ISIC2018_Task3_Test_GroundTruth"
CLASSES = {
    "MEL": "melanoma",
    "NV": "melanocytic_nevi",
    "BCC": "basal_cell_carcinoma",
    "AKIEC": "actinic_keratoses",
    "BKL": "benign_keratosis_like_lesions",
    "DF": "dermatofibroma",
    "VASC": "vascular_lesions",
}
NOTES = {
    "split": f"{PICTURES}, with {TRUTH}.csv",
    "labels": ", ".join(f"{column} is {name}" for column, name in CLASSES.items()),
    "images": IMAGE_NOTE,
}
TEXTS = ("LICENSE.txt", "ATTRIBUTION.txt")


def find(source: Path) -> Sequence[LabelledFile]:
    """Every picture of the test part with its class."""
    folder = folder_at(source, PICTURES)
    table = folder_at(source, TRUTH) / f"{TRUTH}.csv"
    labels: dict[str, str] = {}
    for number, row in enumerate(rows_of(table, ("image", *CLASSES)), start=1):
        if row["image"] in labels:
            raise StagingError(
                f"{table}: expected each image once, found {row['image']} again in row {number}"
            )
        labels[row["image"]] = _label(table, number, row)
    there = {path.name for path in folder.iterdir() if not path.name.startswith(".")} - set(TEXTS)
    wanted = {f"{name}.jpg" for name in labels}
    if missing := wanted - there:
        raise StagingError(f"{folder}: expected the images of {table.name}, found no {some(missing)}")
    if extra := there - wanted:
        raise StagingError(f"{folder}: unexpected {some(extra)}, of which {table.name} says nothing")
    return [
        LabelledFile(name, folder / f"{name}.jpg", label, (table,)) for name, label in sorted(labels.items())
    ]


def _label(table: Path, number: int, row: dict[str, str]) -> str:
    """The one class whose column is 1."""
    try:
        values = {name: float(row[column]) for column, name in CLASSES.items()}
    except ValueError:
        raise StagingError(f"{table}: expected numbers in row {number}, found other text") from None
    chosen = [name for name, value in values.items() if value == 1]
    if len(chosen) != 1 or any(value not in (0, 1) for value in values.values()):
        raise StagingError(
            f"{table}: expected one class with 1 and the others with 0 in row {number}, found others"
        )
    return chosen[0]
