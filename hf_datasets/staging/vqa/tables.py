"""Tables of questions: parquet (with pictures inside), JSON, JSON lines and CSV, each with named errors."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_datasets.staging.base import StagingError, some
from hf_datasets.staging.images import read_picture

Row = dict[str, Any]


@dataclass
class ParquetTable:
    """A parquet file whose pictures are read one row group at a time, when they are asked for."""

    path: Path
    pictures: tuple[str, ...]
    _group: tuple[int, list[Row]] = field(default=(-1, []), repr=False)

    @cached_property
    def opened(self) -> Any:
        from pyarrow import parquet

        try:
            return parquet.ParquetFile(self.path)
        except Exception as error:
            raise self._damaged(error) from None

    def rows(self, columns: Sequence[str]) -> list[Row]:
        """The columns of text, row after row; that the columns of pictures exist is checked too.

        Raises
        ------
        StagingError
            pyarrow is not installed, the file is damaged, or a column is missing.
        """
        there = set(self.opened.schema_arrow.names)
        if missing := {*columns, *self.pictures} - there:
            raise StagingError(f"{self.path}: expected the columns {some(missing)}, found {some(there, 12)}")
        return self._read(list(columns))

    def shown(self, row: int) -> tuple[TablePicture, ...]:
        """The pictures of a row; all but the first may turn out to be empty."""
        return tuple(TablePicture(self, row, column, column != self.pictures[0]) for column in self.pictures)

    def cell(self, row: int, column: str) -> Any:
        """What stands in a column of pictures, read with its row group."""
        start = 0
        for group in range(self.opened.metadata.num_row_groups):
            count = self.opened.metadata.row_group(group).num_rows
            if row < start + count:
                if self._group[0] != group:
                    self._group = (group, self._read(list(self.pictures), group))
                return self._group[1][row - start][column]
            start += count
        raise StagingError(f"{self.path}: expected a row {row}, found {start} rows")

    def _read(self, columns: list[str], group: int | None = None) -> list[Row]:
        try:
            read = self.opened.read if group is None else lambda **kw: self.opened.read_row_group(group, **kw)
            rows: list[Row] = read(columns=columns).to_pylist()
        except Exception as error:
            raise self._damaged(error) from None
        return rows

    def _damaged(self, error: Exception) -> StagingError:
        return StagingError(
            f"{self.path}: not a complete parquet file ({' '.join(str(error).split())[:120]}); download it again"
        )


@dataclass(frozen=True)
class TablePicture:
    """A picture in a cell of a table, encoded in the struct of bytes and path that ``datasets`` writes."""

    table: ParquetTable
    row: int
    column: str
    optional: bool

    @property
    def name(self) -> str:
        return f"{self.file.name}:{self.row}:{self.column}"

    @property
    def file(self) -> Path:
        return self.table.path

    def pixels(self) -> NDArray[np.uint8] | None:
        cell = self.table.cell(self.row, self.column)
        content = cell.get("bytes") if isinstance(cell, dict) else None
        if content:
            return read_picture(self.file / f"row {self.row}", content)
        if self.optional:
            return None
        raise StagingError(
            f"{self.file}: expected a picture in row {self.row}, column {self.column}, found none"
        )


def read_json_list(path: Path) -> list[Row]:
    """A JSON file that is a list of objects.

    Raises
    ------
    StagingError
        It is damaged or something else.
    """
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise StagingError(f"{path}: not complete JSON ({error}); download it again") from None
    if not isinstance(content, list) or not all(isinstance(record, dict) for record in content):
        raise StagingError(f"{path}: expected a list of records, found something else")
    return content


def read_json_lines(path: Path) -> list[Row]:
    """A file with one JSON object a line; errors as in `read_json_list`."""
    rows = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise StagingError(
                f"{path}: line {number} is not complete JSON ({error}); download it again"
            ) from None
        if not isinstance(record, dict):
            raise StagingError(f"{path}: expected an object in line {number}")
        rows.append(record)
    return rows


def read_csv(path: Path, columns: Sequence[str]) -> list[Row]:
    """A CSV file with a header.

    Raises
    ------
    StagingError
        It is not UTF-8, a column is missing, or a row is longer or shorter than the header.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as handle:
            reader = csv.DictReader(handle)
            rows = list(reader)
    except (UnicodeDecodeError, csv.Error) as error:
        raise StagingError(f"{path}: not a complete CSV file ({error}); download it again") from None
    there = set(reader.fieldnames or ())
    if missing := set(columns) - there:
        raise StagingError(f"{path}: expected the columns {some(missing)}, found {some(there, 12)}")
    for number, row in enumerate(rows, start=1):
        if None in row or None in row.values():
            raise StagingError(
                f"{path}: expected {len(there)} fields in row {number}, found another number; download it again"
            )
    return rows
