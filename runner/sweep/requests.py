"""``requests.jsonl`` in a run folder: every request to a provider, noted before it is sent and when it came back.

    {"id", "attempt", "provider", "at", "most_tokens", "most_usd"}      before
    {"id", "in", "out", "cached", "usd", "status": 200}                 paid for
    {"id", "status": 429}                                               refused, free

A request whose second line is missing was under way when its process died, or broke off: whether it was paid for is
known to the provider alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evaluator.trace import Usage
from runner.sweep.engine import Spend

REQUESTS = "requests.jsonl"


class RequestLog:
    """Appends to the file of the attempt that runs now."""

    def __init__(self, folder: Path, attempt: str) -> None:
        self._path = folder / REQUESTS
        self.attempt = attempt

    def sending(self, request: str, provider: str, most: Usage, usd: float | None) -> None:
        self._append(
            {
                "id": request,
                "attempt": self.attempt,
                "provider": provider,
                "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "most_tokens": most.input + most.output,
                "most_usd": usd,
            }
        )

    def paid(self, request: str, usage: Usage, usd: float | None) -> None:
        self._append(
            {
                "id": request,
                "in": usage.input,
                "out": usage.output,
                "cached": usage.cached,
                "usd": usd,
                "status": 200,
            }
        )

    def refused(self, request: str, status: int) -> None:
        self._append({"id": request, "status": status})

    def _append(self, line: dict[str, Any]) -> None:
        with self._path.open("ab") as file:
            file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")


def log_beside(runs: Path, attempt: str) -> RequestLog:
    """The log of an attempt whose run folder is made elsewhere, kept where that folder will lie."""
    folder = runs / attempt.partition("#")[0]
    folder.mkdir(parents=True, exist_ok=True)
    return RequestLog(folder, attempt)


def spend_of(folder: Path, attempt: str) -> Spend:
    """What an attempt spent; its folder may have been set aside since."""
    places = [folder, *folder.parent.glob(f"{folder.name}.attempt*")]
    opened: dict[str, dict[str, Any]] = {}
    closed: dict[str, dict[str, Any]] = {}
    for place in places:
        for line in read_requests(place):
            if line.get("attempt") == attempt:
                opened[line["id"]] = line
            elif "status" in line:
                closed[line["id"]] = line
    return _sum(opened, closed)


def _sum(opened: dict[str, dict[str, Any]], closed: dict[str, dict[str, Any]]) -> Spend:
    paid = [closed[one] for one in opened if one in closed and "in" in closed[one]]
    unseen = [line for one, line in opened.items() if one not in closed]
    return Spend(
        tokens_in=_total(paid, "in"),
        tokens_out=_total(paid, "out"),
        tokens_cached=_total(paid, "cached"),
        usd=sum((line["usd"] or 0.0 for line in paid), 0.0),
        requests=len(opened),
        open=len(unseen),
        open_tokens=_total(unseen, "most_tokens"),
        open_usd=sum((line["most_usd"] or 0.0 for line in unseen), 0.0),
    )


def _total(lines: Iterable[dict[str, Any]], name: str) -> int:
    return sum(int(line[name]) for line in lines)


def read_requests(folder: Path) -> Iterator[dict[str, Any]]:
    """The lines of a run folder's requests; one that was cut short is passed over."""
    path = folder / REQUESTS
    if not path.is_file():
        return
    with path.open("rb") as file:
        for raw in file:
            try:
                line = json.loads(raw)
            except ValueError:
                continue
            if isinstance(line, dict) and "id" in line:
                yield line
