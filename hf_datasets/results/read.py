"""Results as data frames, from a folder of runs or from one that was pulled."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from hf_datasets.arrow import CASES, RUNS, PublishedRun, cases_table, runs_table
from hf_datasets.records import RecordError, RunRecord
from hf_datasets.results.layout import CASES_PARTS, RUNS_PARTS
from hf_datasets.results.tables import Read, read_parts, shortened
from hf_datasets.run_folders import finished, read_cases, read_record

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Cases:
    """Rows of cases (columns of ``cases`` in docs/records.md), and a line for each run whose cases can't be read."""

    frame: DataFrame
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Results:
    """Finished runs.

    Attributes
    ----------
    runs : DataFrame
        One row a run that is not superseded, in the order of run ids; columns of ``runs`` in docs/records.md (null is
        NaN, NaT or None), and ``folder``: the run's folder, or None in results that were pulled.
    problems : tuple of str
        A line for each record or part that was left out, with the reason.
    """

    runs: DataFrame
    problems: tuple[str, ...]
    _read_cases: Callable[[Collection[str] | None], Read]

    def cases_of(self, run_ids: Collection[str]) -> Cases:
        """The cases of some runs, read now."""
        return _framed(self._read_cases(run_ids))

    @cached_property
    def cases(self) -> Cases:
        """The cases of all runs, read when first asked for."""
        return _framed(self._read_cases(None))


def read_results(source: Path) -> Results:
    """Read a folder of run folders, or a folder as `hf_datasets.results.pull` makes it.

    Damaged, newer or hostile records and parts are named in ``problems`` and hide nothing else.

    Raises
    ------
    NotADirectoryError
        There is no such folder.
    """
    if not source.is_dir():
        raise NotADirectoryError(f"{source} is not a folder; expected runs, or results that were pulled")
    return _pulled(source) if (source / RUNS_PARTS).is_dir() else _run_folders(source)


def _pulled(source: Path) -> Results:
    found = read_parts(source / RUNS_PARTS, RUNS)
    frame, problems = _current(found.table, RUNS_PARTS)
    current = pa.array(frame["record_sha256"], pa.string())

    def read(run_ids: Collection[str] | None) -> Read:
        cases = read_parts(source / CASES_PARTS, CASES)
        table = cases.table.filter(pc.is_in(cases.table["record_sha256"], current))
        if run_ids is not None:
            table = table.filter(pc.is_in(table["run_id"], pa.array(list(run_ids), pa.string())))
        return Read(table, cases.problems)

    return Results(frame, (*found.problems, *problems), read)


def _run_folders(source: Path) -> Results:
    runs: list[PublishedRun] = []
    folders: list[str] = []
    problems: list[str] = []
    for folder in finished(source):
        try:
            record, content = read_record(folder)
        except RecordError as error:
            problems.append(str(error))
            continue
        runs.append(PublishedRun(record, sha256(content).hexdigest()))
        folders.append(str(folder))
    table = runs_table(runs).append_column("folder", pa.array(folders, pa.string()))
    frame, repeated = _current(table, str(source))
    records = {run.sha256: run.record for run in runs}
    where = dict(zip(frame["run_id"], zip(frame["folder"], frame["record_sha256"], strict=True), strict=True))

    def read(run_ids: Collection[str] | None) -> Read:
        chosen = (
            where if run_ids is None else {run_id: where[run_id] for run_id in run_ids if run_id in where}
        )
        return _cases_of_folders(
            [(Path(folder), records[digest], digest) for folder, digest in chosen.values()]
        )

    return Results(frame, (*problems, *repeated), read)


def _cases_of_folders(runs: list[tuple[Path, RunRecord, str]]) -> Read:
    rows, problems = [], []
    for folder, record, digest in runs:
        try:
            rows += [(case, digest) for case in read_cases(folder, record)]
        except RecordError as error:
            problems.append(str(error))
    return Read(cases_table(rows), tuple(problems))


def _current(table: pa.Table, where: str) -> tuple[DataFrame, list[str]]:
    """The rows that no other row supersedes, one a run; a line for each run that stands there twice."""
    superseded = pc.drop_null(table["supersedes"]).combine_chunks()
    frame = _frame(table.filter(pc.invert(pc.is_in(table["record_sha256"], superseded))))
    frame = frame.sort_values("run_id", kind="stable", ignore_index=True)
    again = frame.duplicated("run_id")
    problems = [
        f"{row.folder or where}: {shortened(row.run_id)} is there already; this copy is not counted"
        for row in frame[again].itertuples()
    ]
    return frame[~again].reset_index(drop=True), problems


def _frame(table: pa.Table) -> DataFrame:
    if "folder" not in table.column_names:
        table = table.append_column("folder", pa.nulls(len(table), pa.string()))
    return table.to_pandas()


def _framed(read: Read) -> Cases:
    return Cases(read.table.to_pandas(), read.problems)
