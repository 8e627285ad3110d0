"""Which of several records of one run is the newest, and what may follow it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from hf_datasets.hub import Head, Hub, HubError, git_oid
from hf_datasets.records import RecordError, RunRecord, parse_record
from hf_datasets.results.layout import PACKED, parts, run_of_record
from hf_datasets.results.tables import read_pack


@dataclass(frozen=True)
class Truth:
    """A record that is published."""

    record: RunRecord
    sha256: str


def newest(truths: Sequence[Truth]) -> list[Truth]:
    """The records that no other one supersedes."""
    superseded = {truth.record.supersedes for truth in truths}
    return [truth for truth in truths if truth.sha256 not in superseded]


def correction_fault(record: RunRecord, published: Sequence[Truth]) -> str | None:
    """Why a record with other bytes than the published ones of its run may not follow them, in words.

    It has to say that it corrects, and of the same attempt. A correction of a correction that was never published is
    taken; one of a record that was corrected already is not.
    """
    if record.supersedes is None:
        return "another record is published under this run id, and this one supersedes none; nothing is overwritten"
    last = newest(published)
    if record.supersedes in {truth.sha256 for truth in published} - {truth.sha256 for truth in last}:
        return f"it supersedes {record.supersedes[:8]}, which was corrected by another record already"
    same = any(
        (truth.record.trace_sha256, truth.record.cell_sha256) == (record.trace_sha256, record.cell_sha256)
        for truth in published
    )
    return (
        None
        if same
        else "it supersedes a record of another attempt (trace and cell differ); nothing is overwritten"
    )


class Truths:
    """The published records of a repository at one commit, read when first asked for."""

    def __init__(self, hub: Hub, head: Head) -> None:
        self._hub, self._head = hub, head
        self._contents: dict[str, bytes] | None = None

    def of(self, run_id: str) -> list[Truth]:
        """All records of a run, in the order of their paths.

        Raises
        ------
        HubError
            One of them cannot be read.
        """
        paths = sorted(path for path in self._head.files if run_of_record(path) == run_id)
        packed = self._packed()
        return [_truth(path, packed.get(path) or self._hub.read(path, self._head.sha)) for path in paths]

    def _packed(self) -> dict[str, bytes]:
        if self._contents is None:
            packs = [self._hub.read(part.path, self._head.sha) for part in parts(self._head.files, PACKED)]
            rows = (row for pack in packs for row in read_pack(pack, PACKED)[0])
            self._contents = {
                path: content for path, _, content in rows if self._head.files.get(path) == git_oid(content)
            }
        return self._contents


def _truth(path: str, content: bytes) -> Truth:
    try:
        return Truth(parse_record(content, path), sha256(content).hexdigest())
    except RecordError as error:
        raise HubError(f"{error}; nothing was changed") from None
