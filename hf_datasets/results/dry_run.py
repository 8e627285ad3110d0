"""What a push would do, without doing it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hf_datasets.hub import Change, Head, Hub, NoRepository, NotReached
from hf_datasets.results.push import (
    FOLDERS,
    MAX_FILES,
    Outcome,
    Publish,
    Ready,
    Watch,
    batches,
    change_for,
    ready,
)
from hf_datasets.results.signatures import Late, signatures_change


@dataclass
class Plan:
    """Path -> bytes of every file of every commit, and what is taken out; ``outcome`` as after a push, without commits.

    ``note`` says so where the Hub could not be asked, and everything counts as new.
    """

    outcome: Outcome
    commits: int = 0
    write: dict[str, int] = field(default_factory=dict)
    delete: set[str] = field(default_factory=set)
    note: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "repo": self.outcome.repo,
            "dry_run": True,
            "commits": self.commits,
            "write": self.write,
            "delete": sorted(self.delete),
            "already_there": self.outcome.present,
            "withheld": {run_id: list(words) for run_id, words in self.outcome.withheld.items() if words},
            "refused": self.outcome.refused,
            "blocked": self.outcome.blocked,
            "unreadable": self.outcome.unreadable,
            "note": self.note,
        }


def plan(
    runs: Path, hub: Hub, publish: Publish, *, pull_request: bool, watch: Watch = lambda *_: None
) -> Plan:
    """Pack the finished runs below a folder as `hf_datasets.results.push.push` does, and send nothing.

    Raises
    ------
    HubError
        The Hub refuses. A repository that does not exist yet, and a missing network, are no errors.
    """
    planned = Plan(Outcome(hub.repo))
    try:
        head = hub.head(FOLDERS)
    except NoRepository:
        head = Head("", {})
        planned.note = f"{hub.repo} does not exist, or this token may not see it; it would be made"
    except NotReached as reason:
        head = Head("", {})
        planned.note = f"{reason}; everything is taken as new"
    late = Late(head)
    for change in _changes(
        hub, late, ready(runs, late, publish, planned.outcome, watch), planned, pull_request
    ):
        planned.commits += 1
        planned.delete |= change.delete
        planned.write |= {
            path: len(content) if isinstance(content, bytes) else content.stat().st_size
            for path, content in change.write.items()
        }
    return planned


def _changes(
    hub: Hub, late: Late, runs: Iterator[Ready], planned: Plan, pull_request: bool
) -> Iterator[Change]:
    """What each commit of the push would do."""
    for batch in batches(runs):
        change = change_for(hub, late.head, batch, planned.outcome.refused, with_card=not pull_request)
        if change is not None:
            yield change
    for group in late.groups(MAX_FILES):
        change = signatures_change(late.head, group)
        if change is not None:
            yield change
