"""Live progress of a run: one changing line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from evaluator.trace import End, Event, Exec, Files, ProviderError, Submit

if TYPE_CHECKING:
    from runner.session import Session, Watch


class Progress:
    """What a watcher wants to know of a run, updated by its events."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.stage = "S1"
        self.done_cases = 0
        self.note = "starting"

    def see(self, event: Event) -> None:
        if isinstance(event, Files):
            self._guess_stage(event)
        elif isinstance(event, Exec):
            state = "timed out" if event.timed_out else f"exit {event.exit_code}"
            self.note = f"{event.language} {state} in {event.seconds:.1f} s"
        elif isinstance(event, ProviderError):
            self.note = f"provider: {event.message[:60]}; waiting {event.wait:.0f} s"
        elif isinstance(event, Submit):
            self.stage = "S5"
            self.note = "submitted" if event.accepted else f"refused: {event.missing_total} files missing"
        elif isinstance(event, End):
            self.note = f"ended: {event.reason.value}" + ("; scoring" if event.reason.is_agents else "")

    def _guess_stage(self, files: Files) -> None:
        """A guess for people who watch; the judge works from the whole trace."""
        self.done_cases = files.complete_cases
        if files.complete_cases > 1:
            self.stage = max(self.stage, "S4")
        elif files.complete_cases == 1:
            self.stage = max(self.stage, "S3")
        elif any(change.path == "plan.md" for change in files.changes):
            self.stage = max(self.stage, "S2")

    def line(self, session: Session) -> str:
        budget = session.budget
        cost = "" if budget.cost_usd is None else f" | ${budget.cost_usd:.2f}"
        left = int(budget.remaining_seconds())
        return (
            f"{self.title} | {self.stage}? turn {budget.turns}/{budget.limits.turns} | "
            f"{self.done_cases}/{len(session.case_ids)} cases | {left // 60}:{left % 60:02d} left | "
            f"{budget.tokens} tokens{cost} | {self.note}"
        )


@contextmanager
def watching(title: str, quiet: bool = False) -> Iterator[Watch | None]:
    """Yield the watch to give to ``run_cell``; nothing is shown when ``quiet``."""
    if quiet:
        yield None
        return
    progress = Progress(title)
    if sys.stderr.isatty():
        with _live_line(progress) as watch:
            yield _harmless(watch)
    else:
        yield _harmless(_plain_lines(progress))


def _harmless(watch: Watch) -> Watch:
    """A terminal that went away, or a log on a full disk, is no reason to lose a run."""

    def harmless(event: Event, session: Session) -> None:
        with suppress(OSError):
            watch(event, session)

    return harmless


@contextmanager
def _live_line(progress: Progress) -> Iterator[Watch]:
    from rich.console import Console
    from rich.status import Status
    from rich.text import Text

    with Status(Text(progress.title), console=Console(stderr=True)) as status:

        def watch(event: Event, session: Session) -> None:
            progress.see(event)
            status.update(Text(progress.line(session)))

        yield watch


def _plain_lines(progress: Progress) -> Watch:
    def watch(event: Event, session: Session) -> None:
        progress.see(event)
        if isinstance(event, Files | Submit | End | ProviderError):
            print(progress.line(session), file=sys.stderr, flush=True)

    return watch
