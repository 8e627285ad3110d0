"""CSV files with a header, plain or gzipped, row after row: never the whole file in memory."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, cast

from hf_datasets.staging.base import StagingError, listing, some


def rows_of(path: Path, columns: Sequence[str]) -> Iterator[dict[str, str]]:
    """The rows of a CSV file as text, at least with the given columns.

    Raises
    ------
    StagingError
        It is not there, cut short, not UTF-8, lacks a column, or has a row of another length than its header.
    """
    if not path.is_file():
        raise StagingError(f"{path}: expected this table, found {listing(path.parent)}")
    try:
        with _opened(path) as handle:
            reader = csv.DictReader(handle)
            there = set(reader.fieldnames or ())
            if missing := set(columns) - there:
                raise StagingError(f"{path}: expected the columns {some(missing)}, found {some(there, 12)}")
            for number, row in enumerate(reader, start=1):
                if None in row or None in row.values():
                    raise StagingError(
                        f"{path}: expected {len(there)} fields in row {number}, found another number; "
                        "download it again"
                    )
                yield row
    except (UnicodeDecodeError, EOFError, OSError, zlib.error, csv.Error) as error:
        reason = " ".join(str(error).split())[:120]
        raise StagingError(f"{path}: not a complete table ({reason}); download it again") from None


def _opened(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return cast(IO[str], gzip.open(path, "rt", encoding="utf-8-sig", newline=""))
    return path.open(encoding="utf-8-sig", newline="")
