"""``python -m runner sweep``: plan, lock, run, status, pause, resume, cancel."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.options import AsJson, DataDir
from runner.printing import EXIT_UNSCORED, print_rows
from runner.sweep.report.command import report

if TYPE_CHECKING:
    from runner.sweep.folder import SweepFolder
    from runner.sweep.lock import Lock, Standing

app = typer.Typer(
    name="sweep",
    help="Plan, freeze and run many cells; nothing is lost and nothing is mixed.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command()(report)


class EngineName(StrEnum):
    LOCAL = "local"
    RAY = "ray"


SweepFile = Annotated[Path, typer.Argument(help="The SWEEP.yaml (see docs/sweeps.md).")]
Place = Annotated[
    Path, typer.Argument(help="The sweep's folder, for example sweeps/NAME, or its SWEEP.yaml.")
]
Root = Annotated[Path, typer.Option("--sweeps", help="Where sweep folders lie.")]
Accept = Annotated[
    list[str] | None,
    typer.Option(
        help="An input whose change leaves results as they were, such as code_run or agent_environment."
    ),
]


@app.command()
def plan(
    sweep: SweepFile,
    root: Root = Path("sweeps"),
    data: DataDir = Path("data"),
    history: Annotated[
        list[Path] | None, typer.Option(help="Folders of past runs to estimate from; default: runs.")
    ] = None,
    cells: Annotated[bool, typer.Option("--cells", help="List every cell and what it needs.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say what a sweep takes, what is missing, and what an amended one does with what is there. Runs nothing."""
    from runner.sweep.folder import SweepFolder
    from runner.sweep.form import read_form
    from runner.sweep.plan import History, make_plan
    from runner.tables import fitted

    form = read_form(sweep)
    folder = SweepFolder(root / form.name)
    made = make_plan(form, data, History([*(history or [Path("runs")]), folder.runs]))
    found = _standings(folder, form, data) if folder.lock.is_file() and not made.missing else None
    if as_json:
        print(json.dumps(made.as_dict() | _amendment(found, cells), indent=1))
        return
    print_rows(made.rows(), as_json=False)
    tasks = len({block.task for block in made.blocks})
    print(f"\n{made.total.cells:,} cells of {tasks} tasks at {' and '.join(form.tiers)}")
    if made.total.bound:
        print(
            "Cells 'at their limits' have no past run to go by: an upper bound (USD: if every token is input)."
        )
    for one in made.missing:
        print(fitted(f"missing: {one}"))
    if found is not None:
        _print_amendment(found, cells)


@app.command()
def lock(
    sweep: SweepFile,
    root: Root = Path("sweeps"),
    data: DataDir = Path("data"),
    amend: Annotated[
        bool, typer.Option("--amend", help="Put a changed plan in the place of the old.")
    ] = False,
    accept: Accept = None,
    as_json: AsJson = False,
) -> None:
    """Freeze a sweep. Digests of tasks, data, briefs, profiles, environments, code and judge; the folder is made."""
    from runner.errors import UsageProblem
    from runner.sweep.control import driving
    from runner.sweep.folder import SweepFolder
    from runner.sweep.form import read_form
    from runner.sweep.ledger import read_book
    from runner.sweep.lock import (
        Locks,
        count_decisions,
        freeze,
        load_lock,
        lock_id,
        stale_keys,
        standings,
        store,
    )
    from runner.sweep.plan import History, make_plan

    form = read_form(sweep)
    make_plan(form, data, History([]))  # raises what cannot be run at all
    folder = SweepFolder(root / form.name)
    with driving(folder):
        before = load_lock(folder) if folder.lock.is_file() else None
        made = freeze(form, data, before, accept or ())
        book = read_book(folder.ledger)
        found = list(standings(made, Locks(folder), book))
        decisions = count_decisions(found)
        if before is not None and made.content() == before.content() and not accept:
            name, words = lock_id(folder), "locked already, nothing has changed"
        elif before is not None and not amend:
            changed = ", ".join(_differences(before, made))
            raise UsageProblem(
                f"{folder.root} is locked with another {changed}; look with 'sweep plan', then give --amend"
            )
        else:
            name, words = store(folder, made, stale_keys(found, book)), "locked"
    if as_json:
        print(json.dumps({"folder": str(folder.root), "lock": name, "cells": decisions}))
    else:
        counts = ", ".join(f"{decision} {number}" for decision, number in sorted(decisions.items()))
        print(
            f"{folder.root}: {words} ({name}); cells: {counts}\nnext: python -m runner sweep run {folder.root}"
        )


@app.command()
def run(
    sweep: Place,
    root: Root = Path("sweeps"),
    data: DataDir = Path("data"),
    engine: Annotated[EngineName, typer.Option(help="Where cells run.")] = EngineName.LOCAL,
    slots: Annotated[
        int | None, typer.Option(min=1, max=4096, help="Cells at a time; default: what the machine holds.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="Of a Ray cluster, with --engine ray; default: one on this machine.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show nothing while it runs.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run what is locked until every cell is done or left missing. Ctrl-C once: no new cells; twice: stop now."""
    from runner.sweep.sitting import sit

    folder = _folder(sweep, root)
    chosen = (engine.value, slots, address)
    left, stopped_by = sit(folder, data, chosen, quiet=quiet, as_json=as_json)
    if left and not as_json:
        for reason, keys in left.items():
            print(f"missing: {len(keys)} cells, such as {keys[0]}: {reason}", file=sys.stderr)
    if stopped_by is not None:
        raise typer.Exit(128 + stopped_by)
    if left:
        raise typer.Exit(EXIT_UNSCORED)


@app.command()
def status(
    sweep: Place,
    root: Root = Path("sweeps"),
    watch: Annotated[bool, typer.Option("--watch", help="Look again every two seconds.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show how a sweep stands. With --json one object, with --watch one a line."""
    from runner.sweep.status import status_of

    folder = _folder(sweep, root)
    if watch:
        from runner.sweep.watch import watch_status

        watch_status(folder, as_json)
    elif as_json:
        print(json.dumps(status_of(folder).as_dict()))
    else:
        from rich.console import Console

        from runner.sweep.live import page

        Console().print(page(status_of(folder)))


@app.command()
def pause(sweep: Place, root: Root = Path("sweeps")) -> None:
    """Start no new cells until 'resume'. Those that run go on."""
    _wish(sweep, root, "pause", "pauses: running cells go on, no new ones start")


@app.command()
def resume(sweep: Place, root: Root = Path("sweeps")) -> None:
    """Take back 'pause' or 'cancel'."""
    _wish(sweep, root, "run", "may run; start it with 'sweep run' if nobody drives it")


@app.command()
def cancel(sweep: Place, root: Root = Path("sweeps")) -> None:
    """Break off running cells within half a minute, and let nobody go on until 'resume'."""
    _wish(sweep, root, "cancel", "is cancelled; 'sweep resume' takes it back")


def _wish(sweep: Path, root: Path, want: str, words: str) -> None:
    from runner.sweep.control import driver_of, wish
    from runner.sweep.lock import load_lock

    folder = _folder(sweep, root)
    load_lock(folder)
    wish(folder, want)  # type: ignore[arg-type]
    print(f"{folder.root} {words} (driven by: {driver_of(folder) or 'nobody'})")


def _folder(sweep: Path, root: Path) -> SweepFolder:
    """The folder that is meant: itself, or that of a SWEEP.yaml."""
    from runner.sweep.folder import SweepFolder

    if not sweep.is_file():
        return SweepFolder(sweep)
    from runner.sweep.form import read_form

    return SweepFolder(root / read_form(sweep).name)


def _standings(folder: SweepFolder, form: object, data: Path) -> list[Standing]:
    from runner.sweep.form import SweepForm
    from runner.sweep.ledger import read_book
    from runner.sweep.lock import Locks, freeze, load_lock, standings

    assert isinstance(form, SweepForm)
    made = freeze(form, data, load_lock(folder))
    return list(standings(made, Locks(folder), read_book(folder.ledger)))


def _amendment(found: list[Standing] | None, cells: bool) -> dict[str, object]:
    from runner.sweep.lock import count_decisions

    if found is None:
        return {}
    listed = [{"cell": one.cell.key, "decision": one.decision, "changed": list(one.changed)} for one in found]
    return {"amendment": count_decisions(found)} | ({"listed": listed} if cells else {})


def _print_amendment(found: list[Standing], cells: bool) -> None:
    from runner.sweep.lock import count_decisions

    counts = ", ".join(f"{decision} {number}" for decision, number in sorted(count_decisions(found).items()))
    print(f"with the locked sweep as it stands: {counts}")
    if reasons := sorted({name for one in found for name in one.changed}):
        print(f"changed since records were made: {', '.join(reasons)}")
    if cells:
        print_rows(
            [
                {"cell": one.cell.key, "decision": one.decision, "changed": " ".join(one.changed)}
                for one in found
            ],
            as_json=False,
        )


def _differences(before: Lock, after: Lock) -> list[str]:
    old, new = before.content(), after.content()
    return [name for name, value in new.items() if old[name] != value]
