"""Rows and files of a commit: new parts, rewritten parts, and the card that counts them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hf_datasets.arrow import CASES, RUNS, PublishedRun, cases_table, runs_table
from hf_datasets.card import NewerCard, card, require_known
from hf_datasets.hub import Content, Head, Hub, HubError
from hf_datasets.publish import Publication
from hf_datasets.results.layout import CASES_PARTS, PACKED, README, RUNS_PARTS, Part, part_path, parts
from hf_datasets.results.tables import PACKS, read_part, to_parquet


@dataclass
class Files:
    """What a commit writes and deletes, as it grows."""

    write: dict[str, Content] = field(default_factory=dict)
    delete: set[str] = field(default_factory=set)

    def paths_after(self, head: Head) -> set[str]:
        return (set(head.files) | set(self.write)) - self.delete


def add_rows(files: Files, runs: pa.Table, cases: pa.Table) -> None:
    """Write one part of each table; both carry one id, so that a run's rows are found in both."""
    part_id = _id(
        f"{digest} {status}"
        for digest, status in zip(*_columns(runs, "record_sha256", "status"), strict=True)
    )
    files.write[part_path(RUNS_PARTS, part_id, len(runs))] = to_parquet(runs)
    files.write[part_path(CASES_PARTS, part_id, len(cases))] = to_parquet(cases)


def add_packs(files: Files, records: Sequence[tuple[str, str, str, bytes]]) -> None:
    """Write records, given as (path, run id, digest, bytes), once more as one part."""
    table = pa.table(
        [
            pa.array(column, kind)
            for column, kind in zip(zip(*records, strict=True), PACKS.types, strict=True)
        ],
        PACKS,
    )
    add_pack_table(files, table)


def add_pack_table(files: Files, table: pa.Table) -> None:
    part_id = _id(table["record_sha256"].to_pylist())
    files.write[part_path(PACKED, part_id, len(table))] = to_parquet(table)


def new_rows(published: Sequence[tuple[Publication, str]]) -> tuple[pa.Table, pa.Table]:
    """The tables of publications, given with their records' digests."""
    runs = [PublishedRun(publication.record, digest) for publication, digest in published]
    cases = [(case, digest) for publication, digest in published for case in publication.cases]
    return runs_table(runs), cases_table(cases)


def rewrite_parts(files: Files, hub: Hub, head: Head, drop: set[str], statuses: Mapping[str, str]) -> None:
    """Take the rows of some records out of their parts, and give others (by digest) another status."""
    cases_parts = {part.id: part for part in parts(head.files, CASES_PARTS)}
    for part in parts(head.files, RUNS_PARTS):
        before = load(hub, head, part, RUNS)
        runs = with_statuses(_without(before, drop), statuses)
        if runs.equals(before):
            continue
        beside = cases_parts.get(part.id)
        cases = load(hub, head, beside, CASES) if beside else CASES.empty_table()
        files.delete |= {part.path} | ({beside.path} if beside else set())
        if len(runs):
            add_rows(files, runs, _without(cases, drop))


def with_statuses(runs: pa.Table, statuses: Mapping[str, str]) -> pa.Table:
    """The rows with another status where one is given for their record's digest."""
    digests, before = _columns(runs, "record_sha256", "status")
    status = [statuses.get(digest, old) for digest, old in zip(digests, before, strict=True)]
    return runs.set_column(
        runs.column_names.index("status"), RUNS.field("status"), pa.array(status, pa.string())
    )


def add_card(files: Files, hub: Hub, head: Head) -> None:
    """Write the card with the counts as they are after this commit, where it changes."""
    old = hub.read(README, head.sha) if README in head.files else b""
    try:
        require_known(old.decode("utf-8", "replace"))
    except NewerCard as error:
        raise HubError(f"{hub.repo}: {error}") from None
    paths = files.paths_after(head)
    rows = [sum(part.rows for part in parts(paths, folder)) for folder in (RUNS_PARTS, CASES_PARTS)]
    new = card(hub.repo, *rows).encode()
    if new != old:
        files.write[README] = new


def load(hub: Hub, head: Head, part: Part, schema: pa.Schema) -> pa.Table:
    """A part that we may write anew: read whole and without loss.

    Raises
    ------
    HubError
        It is damaged, or holds what this program would drop.
    """
    content = hub.read(part.path, head.sha)
    found = read_part(content, schema, part.path)
    problems = list(found.problems)
    if not problems and set(pq.read_schema(pa.BufferReader(content)).names) - set(schema.names):
        problems.append(f"{part.path}: columns of a newer program; update automedbench")
    if problems:
        raise HubError(f"{hub.repo}: {problems[0]}; nothing was changed")
    return found.table


def _without(table: pa.Table, drop: set[str]) -> pa.Table:
    return table.filter(pc.invert(pc.is_in(table["record_sha256"], pa.array(sorted(drop), pa.string()))))


def _columns(table: pa.Table, *names: str) -> list[list[str]]:
    return [table[name].to_pylist() for name in names]


def _id(lines: Iterable[str]) -> str:
    return sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]
