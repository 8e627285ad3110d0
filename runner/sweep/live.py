"""What is seen of a sweep while it runs: ``live.json`` for other terminals, a table or lines for this one."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from runner.sweep.status import Status, make_status, read_stale

if TYPE_CHECKING:
    from rich.console import Group

    from runner.sweep.driver import Driver

TELL_SECONDS = 1.0
LINE_SECONDS = 30.0
SHOWN_CELLS = 24


class View:
    """Called at every turn of the driver's loop; does something about once a second."""

    def __init__(self, quiet: bool, as_json: bool) -> None:
        self._quiet = quiet
        self._as_json = as_json
        self._next = 0.0
        self._next_line = 0.0
        self._keys: list[str] = []
        self._stale: frozenset[str] = frozenset()
        self._screen: Any = None
        self._last_state = ""

    def __call__(self, driver: Driver) -> None:
        now = time.monotonic()
        changed = driver.state != self._last_state
        if now < self._next and not changed:
            return
        self._next = now + TELL_SECONDS
        self._last_state = driver.state
        state = snapshot(driver)
        _write(driver, state)
        self._show(driver, state, now, changed)

    def status(self, driver: Driver, live: dict[str, Any] | None = None) -> Status:
        """How the driver's sweep stands now."""
        setting = driver.setting
        if not self._keys:
            self._keys, self._stale = setting.lock.keys(), read_stale(setting.folder)
        book = driver.ledger.book
        return make_status(setting.lock.name, setting.lock_name, self._keys, book, live, self._stale)

    @contextlib.contextmanager
    def on_screen(self) -> Iterator[None]:
        """While this lasts, a terminal shows the table."""
        if self._quiet or self._as_json or not sys.stderr.isatty():
            yield
            return
        from rich.console import Console
        from rich.live import Live

        with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as self._screen:
            yield
        self._screen = None

    def _show(self, driver: Driver, state: dict[str, Any], now: float, changed: bool) -> None:
        if self._quiet:
            return
        with contextlib.suppress(OSError):  # a terminal that went away is no reason to stop a sweep
            if self._screen is not None:
                self._screen.update(page(self.status(driver, state)), refresh=True)
            elif self._as_json:
                print(json.dumps(self.status(driver, state).as_dict()), flush=True)
            elif changed or now >= self._next_line:
                self._next_line = now + LINE_SECONDS
                print(line(self.status(driver, state)), file=sys.stderr, flush=True)


def snapshot(driver: Driver) -> dict[str, Any]:
    """What a living driver says of itself."""
    now = driver.clock()
    broker = driver.setting.broker
    progress = broker.progress() if broker else {}
    running = [
        {
            "key": key,
            "attempt": job.attempt,
            "seconds": round(now - driver.since[key], 1),
            **progress.get(job.id, {}),
        }
        for key, job in driver.running.items()
    ]
    rates = broker.rates() if broker else {}
    return {
        "pid": os.getpid(),
        "host": platform.node(),
        "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "engine": driver.engine.name,
        "slots": driver.engine.slots,
        "state": driver.state,
        "why": driver.why,
        "running": running,
        "left_missing": driver.missing,
        "providers": {
            host: {"in_flight": one.in_flight, "window": round(one.window, 2), "cuts": one.cuts}
            for host, one in rates.items()
        },
    }


def _write(driver: Driver, state: dict[str, Any]) -> None:
    """Put ``live.json`` in place; it may be lost with the power, so nothing waits for the disk."""
    path = driver.setting.folder.live
    part = path.with_name(".live.json.part")
    try:
        part.write_text(json.dumps(state))
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)


# --- for people ---


def line(status: Status) -> str:
    """The status in one line."""
    parts = [
        f"{status.name}: {status.done}/{status.planned} done, {status.running} running",
        status.state + (f" ({status.why})" if status.why else ""),
        f"{status.tokens_in + status.tokens_out:,} tokens, ${status.usd:.2f}",
    ]
    if status.open_requests:
        parts.append(f"{status.open_requests} requests without an answer seen")
    if status.per_hour:
        parts.append(f"{status.per_hour:.0f} an hour, {_span(status.eta_seconds)} to go")
    if status.failures:
        parts.append(", ".join(f"{cause} {number}" for cause, number in sorted(status.failures.items())))
    return " | ".join(parts)


def page(status: Status) -> Group:
    """The status as tables: the sweep, its agents, the running cells, failures by cause."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    def table(*columns: str) -> Table:
        made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        for column in columns:
            made.add_column(column, justify="left" if column in ("cell", "agent", "note") else "right")
        return made

    agents = table("agent", "done", "of", "tokens", "USD")
    for name, row in status.agents.items():
        agents.add_row(name, str(row["done"]), str(row["planned"]), f"{row['tokens']:,}", f"{row['usd']:.2f}")
    parts: list[Any] = [Text(line(status)), agents]
    running = status.driver["running"] if status.driver else []
    if running:
        cells = table("cell", "try", "stage", "turn", "left", "tokens", "USD", "cases", "note")
        for one in running[:SHOWN_CELLS]:
            cells.add_row(*_cell_row(one))
        parts.append(cells)
    return Group(*parts)


def _cell_row(one: dict[str, Any]) -> tuple[Any, ...]:
    from rich.text import Text

    cases = f"{one['cases']}/{one['of_cases']}" if "cases" in one else "-"
    return (
        one["key"],
        str(one["attempt"]),
        str(one.get("stage", "-")),
        str(one.get("turn", "-")),
        _span(one.get("seconds_left")),
        f"{one.get('tokens', 0):,}",
        "-" if one.get("usd") is None else f"{one['usd']:.2f}",
        cases,
        Text(str(one.get("note", ""))[:60]),
    )


def _span(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
