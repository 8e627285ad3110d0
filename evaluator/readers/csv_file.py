"""CSV tables from people we do not trust."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

from evaluator.readers.errors import ReadError
from evaluator.readers.text_file import read_text

MAX_BYTES = 8 << 20
MAX_ROWS = 200_000


def read_csv(
    path: Path, columns: Sequence[str], *, max_bytes: int = MAX_BYTES, max_rows: int = MAX_ROWS
) -> list[dict[str, str]]:
    """Read a comma-separated table with a header line.

    Parameters
    ----------
    path : Path
    columns : sequence of str
        The header, in any order; no other column is accepted.
    max_bytes, max_rows : int

    Returns
    -------
    list of dict
        One dict a row, column -> text without surrounding white space. Fields may be quoted by the rules of
        RFC 4180.

    Raises
    ------
    ReadError
        As `read_text`, and ``bad_csv``, ``too_large``.
    """
    reader = csv.reader(StringIO(read_text(path, max_bytes=max_bytes), newline=""), strict=True)
    rows: list[dict[str, str]] = []
    try:
        header = [field.strip() for field in next(reader, [])]
        if sorted(header) != sorted(columns):
            found = [name[:40] for name in header[:8]]
            raise ReadError("bad_csv", f"{path.name} has the columns {found}, expected {list(columns)}")
        for fields in reader:
            if not fields:
                continue
            if len(fields) != len(header):
                raise ReadError(
                    "bad_csv",
                    f"{path.name} line {reader.line_num} has {len(fields)} fields, not {len(header)}",
                )
            if len(rows) == max_rows:
                raise ReadError("too_large", f"{path.name} has more than {max_rows} rows")
            rows.append({name: field.strip() for name, field in zip(header, fields, strict=True)})
    except csv.Error as error:
        raise ReadError("bad_csv", f"{path.name} line {reader.line_num}: {error}") from None
    return rows
