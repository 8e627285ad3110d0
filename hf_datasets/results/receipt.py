"""What a push did, as a file in the folder of runs and as lines for people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evaluator.files import write_atomic
from hf_datasets.results.push import Outcome


def receipt_path(runs: Path, repo: str) -> Path:
    return runs / f"published.{repo.replace('/', '--')}.json"


def write_receipt(runs: Path, outcome: Outcome) -> None:
    """Keep the receipt of a push. The Hub alone decides what is published; this is for people."""
    write_atomic(
        receipt_path(runs, outcome.repo), json.dumps(as_json(outcome), indent=1, sort_keys=True) + "\n"
    )


def as_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "repo": outcome.repo,
        "revision": outcome.revision or "main",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commits": outcome.commits,
        "published": outcome.published,
        "already_there": outcome.present,
        "signatures_added": outcome.signed,
        "refused": outcome.refused,
        "blocked": outcome.blocked,
        "withheld": {run_id: list(words) for run_id, words in outcome.withheld.items() if words},
        "unreadable": outcome.unreadable,
    }


def lines(outcome: Outcome) -> Iterator[str]:
    """The same in words; what needs somebody's attention, by name."""
    yield (
        f"{outcome.repo}: {_count(outcome.published)} published in {len(outcome.commits)} "
        f"commit{'' if len(outcome.commits) == 1 else 's'}, {len(outcome.present)} there already"
    )
    if outcome.signed:
        yield f"signature added: {len(outcome.signed)} of those that were there"
    for run_id, reason in outcome.refused.items():
        yield f"refused: {run_id}: {reason}"
    for run_id, reason in outcome.blocked.items():
        yield f"blocked: {run_id}: {reason}"
    for problem in outcome.unreadable:
        yield f"unreadable: {problem}"


def _count(runs: dict[str, str]) -> str:
    return f"{len(runs)} run{'' if len(runs) == 1 else 's'}"
