"""Reading parts that anybody may have written: what fits our schema is taken, the rest is named and left out."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hf_datasets.arrow import VERSION_KEY
from hf_datasets.records import SCHEMA_VERSION

_RUN_ID = r"^[a-z0-9][a-z0-9.\-]{0,199}$"
_UNITS = (
    "overall", "agentic", "task_score", "task_score_ungated", "s1", "s2", "s3", "s4", "s5", "completion", "score"
)  # fmt: skip
_NAMED = 3
"""So many bad rows are named, the others counted."""


@dataclass(frozen=True)
class Read:
    """Rows in our schema, and a line for each thing that was left out."""

    table: pa.Table
    problems: tuple[str, ...] = ()


def to_parquet(table: pa.Table) -> bytes:
    """The bytes of a part; the same table gives the same bytes with the same version of Arrow."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", compression_level=9, write_page_checksum=True)
    return sink.getvalue()


def read_part(source: Path | bytes, schema: pa.Schema, where: str) -> Read:
    """Read one part. Columns that it lacks are null, columns that we don't know are left out.

    Never raises for what lies in the part: a file that is none of ours, a newer schema, hostile run ids and
    values out of range are named in ``problems``.
    """
    try:
        opened = pa.BufferReader(source) if isinstance(source, bytes) else source
        with pq.ParquetFile(opened, page_checksum_verification=True) as file:
            version = int((file.schema_arrow.metadata or {}).get(VERSION_KEY, b"1"))
            if version > SCHEMA_VERSION:
                return _nothing(schema, f"{where}: {_newer(version)}")
            known = [name for name in schema.names if name in file.schema_arrow.names]
            table = _conform(file.read(columns=known), schema)
            table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        return _nothing(schema, f"{where}: cannot be read: {' '.join(str(error).split())[:200]}")
    return _checked(table, where) if "schema_version" in schema.names else Read(table)


def read_parts(folder: Path, schema: pa.Schema) -> Read:
    """All parts of a folder, one below the other."""
    found = [
        read_part(path, schema, f"{folder.name}/{path.name}") for path in sorted(folder.glob("*.parquet"))
    ]
    if not found:
        return Read(schema.empty_table())
    problems = tuple(problem for one in found for problem in one.problems)
    return Read(pa.concat_tables([one.table for one in found]), problems)


PACKS = pa.schema(
    [("path", pa.string()), ("run_id", pa.string()), ("record_sha256", pa.string()), ("record", pa.binary())]
)
"""Of ``records/packed``: bytes of a record or of a signature, their digest, and where they lie."""


def read_pack(source: Path | bytes, where: str) -> tuple[list[tuple[str, str, bytes]], tuple[str, ...]]:
    """Path, digest and bytes of what a pack holds, and a line where it cannot be read."""
    try:
        table = pq.read_table(pa.BufferReader(source) if isinstance(source, bytes) else source, schema=PACKS)
        table.validate(full=True)
        columns = [table[name].to_pylist() for name in ("path", "record_sha256", "record")]
    except (pa.ArrowException, OSError, ValueError) as error:
        return [], (f"{where}: cannot be read: {' '.join(str(error).split())[:200]}",)
    return [row for row in zip(*columns, strict=True) if None not in row], ()


def _conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _checked(table: pa.Table, where: str) -> Read:
    """Rows that a reader can rely on; the others are named, a line for each cause."""
    problems = []
    for words, bad in _CHECKS:
        wrong = pc.fill_null(bad(table), False)
        if not pc.any(wrong, min_count=0).as_py():
            continue
        ids = table.filter(wrong)["run_id"]
        shown = ", ".join(shortened(run_id) for run_id in ids[:_NAMED].to_pylist())
        more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
        problems.append(f"{where}: {words}: {shown}{more}")
        table = table.filter(pc.invert(wrong))
    return Read(table, tuple(problems))


def shortened(text: object) -> str:
    """Foreign text for a message: quoted, plain ASCII, at most 60 characters."""
    quoted = ascii(text)
    return quoted if len(quoted) <= 60 else f"{quoted[:57]}..."


def _newer(version: object) -> str:
    return f"schema version {version}; this program reads version {SCHEMA_VERSION}, update it"


def _bad_id(table: pa.Table) -> pa.ChunkedArray:
    return pc.invert(pc.fill_null(pc.match_substring_regex(table["run_id"], _RUN_ID), False))


def _out_of_range(table: pa.Table) -> pa.ChunkedArray:
    wrong = pa.chunked_array([pa.array([False] * len(table), pa.bool_())])
    for name in set(_UNITS) & set(table.column_names):
        inside = pc.and_(pc.greater_equal(table[name], 0.0), pc.less_equal(table[name], 1.0))
        wrong = pc.or_(wrong, pc.fill_null(pc.invert(inside), False))
    return wrong


_CHECKS: tuple[tuple[str, Callable[[pa.Table], pa.ChunkedArray]], ...] = (
    (_newer("newer than ours"), lambda table: pc.greater(table["schema_version"], SCHEMA_VERSION)),
    ("a run id that is none (expected a-z, 0-9, dots and dashes, at most 200)", _bad_id),
    ("a score outside [0, 1]", _out_of_range),
)


def _nothing(schema: pa.Schema, problem: str) -> Read:
    return Read(schema.empty_table(), (problem,))
