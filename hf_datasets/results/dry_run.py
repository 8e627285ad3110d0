"""What a push would do, without doing it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hf_datasets.hub import Head, Hub, NoRepository, NotReached
from hf_datasets.results.push import FOLDERS, Outcome, Publish, Watch, batches, change_for, ready


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
    for batch in batches(ready(runs, head, publish, planned.outcome, watch)):
        change = change_for(hub, head, batch, planned.outcome.refused, with_card=not pull_request)
        if change is None:
            continue
        planned.commits += 1
        planned.delete |= change.delete
        planned.write |= {
            path: len(content) if isinstance(content, bytes) else content.stat().st_size
            for path, content in change.write.items()
        }
    return planned
