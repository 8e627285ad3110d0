"""What the commands of ``python -m runner`` print: tables or JSON on stdout, everything else on stderr."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

if TYPE_CHECKING:
    from runner.ended import Outcome

EXIT_USAGE, EXIT_ENVIRONMENT, EXIT_UNSCORED = 2, 3, 4


def require_run_folder(run: Path) -> Path:
    """``run`` itself, when it is a run folder."""
    from runner.errors import UsageProblem

    if not (run / "cell.json").is_file():
        raise UsageProblem(f"{run} is not a run folder: expected a cell.json in it (see 'list runs')")
    return run


def report_outcome(outcome: Outcome, as_json: bool) -> None:
    """Print how a run ended; exit code 4 when it ended without a score."""
    from runner.listing import summary

    record = outcome.record
    if as_json:
        print(
            json.dumps(
                {
                    "state": outcome.state,
                    "folder": str(outcome.folder),
                    "record": record.model_dump(mode="json"),
                }
            )
        )
    else:
        if outcome.state == "already":
            print(f"already done: {outcome.folder}")
        print_rows([summary(record)], as_json=False)
        print(
            f"record: {outcome.folder / ('unscored.json' if outcome.state == 'unscored' else 'record.json')}"
        )
    if outcome.state == "unscored":
        print(
            f"not scored ({record.end_reason}): {record.end_detail}; run the same command again",
            file=sys.stderr,
        )
        raise typer.Exit(EXIT_UNSCORED)


def print_rows(rows: Iterable[dict[str, Any]], as_json: bool) -> None:
    """A table for people, or a JSON list."""
    if as_json:
        print(json.dumps(list(rows), indent=1, default=str))
        return
    from runner.tables import print_table

    print_table(list(rows))


def fail(message: str, code: int) -> NoReturn:
    """One line on stderr (with ``--json`` an object on stdout too), then the exit code."""
    from runner.tables import plain

    with contextlib.suppress(OSError):  # what cannot be printed must not take the exit code's place
        if "--json" in sys.argv:
            print(json.dumps({"error": message, "exit": code}), flush=True)
    with contextlib.suppress(OSError):
        print(f"error: {plain(message)}", file=sys.stderr)  # it may quote a stranger's file
    sys.exit(code)
