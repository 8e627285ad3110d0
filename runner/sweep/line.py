"""A worker's end of the line to the driver: the gate that its requests pass, and the watch on its run."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import uuid
from collections.abc import Iterator
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

from evaluator.trace import Event, Usage
from runner.agents import gate
from runner.agents.failure import Failure
from runner.progress import Progress
from runner.session import Session
from runner.sweep.engine import Job, Line
from runner.sweep.requests import RequestLog

TELL_SECONDS = 0.5


class WorkerLine:
    """The connections of one worker process, kept for all its jobs: one for each thread, so that a thread that waits
    for leave holds up nobody else.
    """

    def __init__(self, line: Line) -> None:
        self._line = line
        self._mine = threading.local()

    def tell(self, message: dict[str, Any]) -> None:
        self._connection().send_bytes(json.dumps(message).encode())

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send, and wait for the answer."""
        self.tell(message)
        answer: dict[str, Any] = json.loads(self._connection().recv_bytes())
        return answer

    def _connection(self) -> Connection:
        if not hasattr(self._mine, "connection"):
            self._mine.connection = Client(self._line.address, authkey=self._line.secret)
        connection: Connection = self._mine.connection
        return connection


class SharedGate:
    """Rates and budgets of the sweep, and the log of the attempt's requests."""

    def __init__(self, line: WorkerLine, log: RequestLog, agent: str) -> None:
        self._line = line
        self._log = log
        self._agent = agent

    def admit(self, provider: str, usage: Usage, usd: float | None, patience: float) -> gate.Ticket | None:
        request = uuid.uuid4().hex
        answer = self._line.ask(
            {
                "op": "admit",
                "id": request,
                "provider": provider,
                "agent": self._agent,
                "attempt": self._log.attempt,
                "usd": usd,
                "tokens": usage.input + usage.output,
                "patience": min(patience, 86_400.0),
            }
        )
        if "spent" in answer:
            raise gate.BudgetSpent(answer["spent"])
        if "late" in answer:
            return None
        self._log.sending(request, provider, usage, usd)
        return _SharedTicket(request, usage, usd, self._line, self._log)


class _SharedTicket:
    """Leave for one request; ``reserved`` stands in where the endpoint does not count."""

    def __init__(
        self, request: str, reserved: Usage, usd: float | None, line: WorkerLine, log: RequestLog
    ) -> None:
        self.id = request
        self._reserved = reserved
        self._usd = usd
        self._line = line
        self._log = log

    def paid(self, usage: Usage | None, usd: float | None) -> None:
        usage, usd = (self._reserved, self._usd) if usage is None else (usage, usd)
        self._log.paid(self.id, usage, usd)
        self._line.tell({"op": "paid", "id": self.id, "usage": usage.model_dump(), "usd": usd})

    def failed(self, failure: Failure) -> None:
        if failure.status is not None:
            self._log.refused(self.id, failure.status)
        self._line.tell(
            {"op": "failed", "id": self.id, "status": failure.status, "retry_after": failure.retry_after}
        )


class Teller:
    """A watch that tells the driver what the run is doing, at most about twice a second."""

    def __init__(self, line: WorkerLine | None, attempt: str, title: str) -> None:
        self._line = line
        self._attempt = attempt
        self._progress = Progress(title)
        self._next = 0.0
        self.seconds = 0.0

    def __call__(self, event: Event, session: Session) -> None:
        self._progress.see(event)
        budget = session.budget
        self.seconds = budget.wall_seconds()
        now = time.monotonic()
        if self._line is None or now < self._next:
            return
        self._next = now + TELL_SECONDS
        state = {
            "stage": self._progress.stage,
            "turn": budget.turns,
            "seconds_left": round(budget.remaining_seconds(), 1),
            "tokens": budget.tokens,
            "usd": budget.cost_usd,
            "cases": self._progress.done_cases,
            "of_cases": len(session.case_ids),
            "note": self._progress.note,
        }
        self._line.tell({"op": "progress", "attempt": self._attempt, "state": state})


_lines: dict[bytes, WorkerLine] = {}


@contextlib.contextmanager
def serving(job: Job, folder: Path) -> Iterator[Teller]:
    """Install the gate for a job, and yield the watch to give to its run."""
    line = None
    if job.line is not None:
        line = _lines.get(job.line.secret)
        if line is None:
            line = _lines[job.line.secret] = WorkerLine(job.line)
        gate.install(SharedGate(line, RequestLog(folder, job.id), job.cell.agent))
    try:
        yield Teller(line, job.id, str(job.cell))
    finally:
        gate.install(None)
