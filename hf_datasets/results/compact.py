"""Upkeep of a results repository: few parts instead of many, and the outcome of verifying in the tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from hf_datasets.arrow import CASES, RUNS
from hf_datasets.hub import Change, Head, Hub
from hf_datasets.records import RunStatus
from hf_datasets.results.layout import CASES_PARTS, DATA, PACKED, RECORDS, RUNS_PARTS, STATUS, Part, parts
from hf_datasets.results.packing import Files, add_card, add_pack_table, add_rows, load, rewrite_parts
from hf_datasets.results.tables import PACKS

RUNS_A_PART = 5_000
"""A part of so many runs stays quick to rewrite when one of them is corrected."""


def compact(hub: Hub, revision: str | None = None) -> str:
    """Merge the parts of the tables and the packs; the commit that holds it, the old one where nothing changes.

    Rows of superseded records and second rows of a run go. Records are not touched.

    Raises
    ------
    HubError
        A part is damaged or of a newer program, and nothing was changed; or the Hub refuses.
    """

    def build(head: Head) -> Change | None:
        files = Files()
        old = {folder: parts(head.files, folder) for folder in (RUNS_PARTS, CASES_PARTS, PACKED)}
        runs = _current(_joined(hub, head, old[RUNS_PARTS], RUNS))
        cases = _joined(hub, head, old[CASES_PARTS], CASES)
        for group in _slices(runs):
            of_group = pc.is_in(cases["record_sha256"], group["record_sha256"].combine_chunks())
            add_rows(
                files,
                group,
                cases.filter(of_group).sort_by([("run_id", "ascending"), ("case_id", "ascending")]),
            )
        for group in _slices(_first_of_each(_joined(hub, head, old[PACKED], PACKS), "path")):
            add_pack_table(files, group)
        files.delete |= {part.path for found in old.values() for part in found} - set(files.write)
        add_card(files, hub, head)
        files.write = {
            path: content
            for path, content in files.write.items()
            if path not in head.files or path == "README.md"
        }
        if not files.write and not files.delete:
            return None
        return Change(f"Compact {len(runs)} runs", files.write, frozenset(files.delete))

    return hub.commit(build, (RECORDS, DATA), revision)


def publish_statuses(hub: Hub, statuses: Iterable[RunStatus], revision: str | None = None) -> str:
    """Write what became of verifying some runs, as files and into the tables, in one commit.

    Raises
    ------
    HubError
        As in `compact`.
    """
    found = list(statuses)
    contents = {
        f"{STATUS}/{status.run_id}.json": (status.model_dump_json(indent=1) + "\n").encode()
        for status in found
    }

    def build(head: Head) -> Change | None:
        files = Files()
        rewrite_parts(files, hub, head, set(), {status.record_sha256: status.status for status in found})
        files.write |= {
            path: content
            for path, content in contents.items()
            if path not in head.files or hub.read(path, head.sha) != content
        }
        if not files.write:
            return None
        return Change(f"Verified {len(found)} runs", files.write, frozenset(files.delete))

    return hub.commit(build, (DATA, STATUS), revision)


def _joined(hub: Hub, head: Head, found: list[Part], schema: pa.Schema) -> pa.Table:
    return pa.concat_tables([schema.empty_table(), *(load(hub, head, part, schema) for part in found)])


def _current(runs: pa.Table) -> pa.Table:
    superseded = pc.drop_null(runs["supersedes"]).combine_chunks()
    return _first_of_each(runs.filter(pc.invert(pc.is_in(runs["record_sha256"], superseded))), "run_id")


def _first_of_each(table: pa.Table, column: str) -> pa.Table:
    """The table sorted by a column, one row for each of its values."""
    ordered = table.sort_by(column)
    values = ordered[column].to_pylist()
    keep = [at == 0 or values[at - 1] != value for at, value in enumerate(values)]
    return ordered.filter(pa.array(keep, pa.bool_()))


def _slices(table: pa.Table) -> Iterator[pa.Table]:
    return (table.slice(start, RUNS_A_PART) for start in range(0, len(table), RUNS_A_PART))
