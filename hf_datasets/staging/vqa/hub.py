"""The parquet files that the Hub keeps of a dataset."""

from __future__ import annotations

import re
from pathlib import Path

from hf_datasets.staging.base import StagingError, listing, refuse_strangers, some
from hf_datasets.staging.vqa.tables import ParquetTable

_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\b")


def tables_of(source: Path, folder: str, pattern: str, pictures: tuple[str, ...]) -> list[ParquetTable]:
    """The tables of one split in order.

    Parameters
    ----------
    pictures : tuple of str
        The columns that hold pictures.

    Raises
    ------
    StagingError
        None is there, one of the numbered shards is missing, or the folder holds other things than tables.
    """
    place = source / folder
    found = sorted(place.glob(pattern))
    if not found:
        raise StagingError(f"{source}: expected {folder}/{pattern}, found {listing(place)}")
    there = [path.name for path in place.iterdir()]
    refuse_strangers(place, there, (name for name in there if name.endswith(".parquet")))
    _refuse_gaps(place, found)
    return [ParquetTable(path, pictures) for path in found]


def _refuse_gaps(place: Path, found: list[Path]) -> None:
    numbers = [match.groups() for path in found if (match := _SHARD.search(path.name))]
    if numbers and len(numbers) != int(numbers[0][1]):
        have = some((number for number, _ in numbers), 12)
        raise StagingError(
            f"{place}: expected all {int(numbers[0][1])} shards of the split, found only {have}"
        )
