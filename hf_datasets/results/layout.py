"""Where things lie in a results repository, and in a folder that was pulled from one.

    README.md                          the card: configs, schema, counts, how to load
    records/<yyyy>/<run_id>.json       the truth: a run's record, byte for byte, never rewritten
    records/<yyyy>/<run_id>_<digest>.json    a correction of it, by the first 8 digits of its own SHA-256
    records/<yyyy>/<record's name>.sig       an SSH signature over that record's bytes, where somebody vouches for it
    records/packed/part-*.parquet      records and signatures once more, packed: thousands are read in one request
    data/runs/part-*.parquet           one row a run that is not superseded (config "runs")
    data/cases/part-*.parquet          one row a case of those runs (config "cases")
    status/<run_id>.json               what became of verifying it
    previews/<run_id>/                 pictures of what was submitted, where the task's terms allow it, as for
    traces/<run_id>.jsonl.zst          what the host saw, redacted
    details/<run_id>/                  cell, report and judgement
    outputs/<run_id>.tar.zst           what the agent handed in

A run id holds no underscore, so that a correction's name can't be another run's. A part's name ends in its row count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from hf_datasets.records import RunRecord
from hf_datasets.signing import SUFFIX

README = "README.md"
RECORDS, PACKED = "records", "records/packed"
DATA, RUNS_PARTS, CASES_PARTS = "data", "data/runs", "data/cases"
STATUS = "status"
FOLDER_LIMIT = 4_500
"""Records in one folder, with room for a signature beside each; the Hub takes at most 10,000 files."""

_RECORD = re.compile(
    r"records/[0-9]{4}(?:-[0-9]+)?/(?P<run_id>[a-z0-9][a-z0-9.\-]{0,199})(?:_[0-9a-f]{8})?\.json"
)
_PART = re.compile(r"(?P<folder>.+)/part-(?P<id>[0-9a-f]{16})-(?P<rows>[0-9]+)\.parquet")


@dataclass(frozen=True)
class Part:
    """One parquet file by what its name says."""

    path: str
    folder: str
    id: str
    rows: int


def run_of_record(path: str) -> str | None:
    """The run id of a record's path; None for any other path."""
    found = _RECORD.fullmatch(path)
    return found["run_id"] if found else None


def is_stray_record(path: str) -> bool:
    """Whether a path lies among the records without being one, or a signature."""
    return path.startswith(f"{RECORDS}/") and not path.startswith(f"{PACKED}/") and not is_packed(path)


def record_of_signature(path: str) -> str | None:
    """The path of the record that a signature lies beside; None for any other path."""
    record = path.removesuffix(SUFFIX)
    return record if record != path and run_of_record(record) else None


def is_packed(path: str) -> bool:
    """Whether a file with this path has its place in the packs: a record or a signature."""
    return bool(run_of_record(path) or record_of_signature(path))


def record_path(record: RunRecord, sha256: str, *, correction: bool, taken: dict[str, int]) -> str:
    """Where a record goes. ``taken`` counts the records of each folder of the repository."""
    year = f"{record.started_at.year:04d}"
    folder, volume = f"{RECORDS}/{year}", 1
    while taken.get(folder, 0) >= FOLDER_LIMIT:
        volume += 1
        folder = f"{RECORDS}/{year}-{volume}"
    return f"{folder}/{record.run_id}{f'_{sha256[:8]}' if correction else ''}.json"


def own_paths(run_id: str) -> tuple[str, ...]:
    """Beginnings of the paths where a run's other files may lie."""
    return (
        f"previews/{run_id}/",
        f"details/{run_id}/",
        f"traces/{run_id}.jsonl.zst",
        f"outputs/{run_id}.tar.zst",
    )


def part_path(folder: str, part_id: str, rows: int) -> str:
    return f"{folder}/part-{part_id}-{rows}.parquet"


def parts(paths: Iterable[str], folder: str) -> list[Part]:
    """The parts of a folder, in the order of their names."""
    found = (_PART.fullmatch(path) for path in sorted(paths))
    return [
        Part(one[0], one["folder"], one["id"], int(one["rows"]))
        for one in found
        if one and one["folder"] == folder
    ]


def folder_counts(paths: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for path in paths:
        folder = path.rpartition("/")[0]
        counts[folder] = counts.get(folder, 0) + 1
    return counts
