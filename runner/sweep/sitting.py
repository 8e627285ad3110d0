"""One sitting of ``sweep run``: everything that a driver needs is made, used and put away."""

from __future__ import annotations

import contextlib
import functools
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from runner.errors import EnvironmentProblem, UsageProblem
from runner.stop import SIGNALS
from runner.sweep.broker import Broker, own_address
from runner.sweep.budget import Purses
from runner.sweep.control import driving, wished
from runner.sweep.driver import Driver, Setting
from runner.sweep.engine import Address, Engine, Needs
from runner.sweep.folder import SweepFolder
from runner.sweep.hurdles import Hurdles
from runner.sweep.ledger import Ledger
from runner.sweep.live import View
from runner.sweep.local import LocalEngine
from runner.sweep.lock import Lock, freeze, load_lock, lock_id
from runner.sweep.plan import what_is_missing
from runner.sweep.requests import log_beside

Chosen = tuple[str, int | None, str | None]
"""Name of the engine, slots, address of its cluster."""


def sit(
    folder: SweepFolder, data: Path, chosen: Chosen, *, quiet: bool = False, as_json: bool = False
) -> tuple[dict[str, list[str]], int | None]:
    """Drive a locked sweep; the cells that are left missing by reason, and the signal that ended it, if one did.

    Raises
    ------
    UsageProblem
        It is not locked, cancelled, another process drives it, or its inputs have changed since.
    EnvironmentProblem
        This machine cannot run it.
    """
    lock = load_lock(folder)
    if wished(folder) == "cancel":
        raise UsageProblem(f"{folder.root} was cancelled; 'sweep resume' takes that back")
    with driving(folder):
        if chosen[0] == "local" and (missing := what_is_missing(lock.form, data)):
            raise EnvironmentProblem("; ".join(missing))
        _require_as_locked(lock, data)
        folder.runs.mkdir(parents=True, exist_ok=True)
        with _ledger(folder) as ledger, _broker(lock, ledger, folder, chosen) as broker:
            setting = Setting(folder, lock, lock_id(folder), data.resolve(), broker)
            hurdles = Hurdles(folder.runs, lock.form.sandbox if chosen[0] == "local" else None)
            view = View(quiet, as_json)
            driver = Driver(setting, _engine(lock, folder, chosen), ledger, hurdles, view)
            with _listening(driver) as heard, view.on_screen():
                driver.engine.start()
                driver.run()
            return _left(driver), heard[0] if heard else None


def _require_as_locked(lock: Lock, data: Path) -> None:
    """Refuse early what every worker would refuse."""
    now = freeze(lock.form, data, lock)
    old, new = lock.content(), now.content()
    if different := [name for name, value in new.items() if old[name] != value]:
        raise UsageProblem(
            f"{', '.join(different)} changed since the sweep was locked; see what that means with 'sweep plan', "
            "then 'sweep lock --amend'"
        )


@contextlib.contextmanager
def _ledger(folder: SweepFolder) -> Iterator[Ledger]:
    ledger = Ledger(folder.ledger)
    try:
        yield ledger
    finally:
        ledger.close()


@contextlib.contextmanager
def _broker(lock: Lock, ledger: Ledger, folder: SweepFolder, chosen: Chosen) -> Iterator[Broker]:
    address, elsewhere = _address(chosen), chosen[0] != "local"
    log_of = functools.partial(log_beside, folder.runs) if elsewhere else None
    purses = Purses(lock.form.budget, ledger.book.spend, ledger.book.spend_by_agent)
    with tempfile.TemporaryDirectory(prefix="automedbench-") as place:
        broker = Broker(purses, lock.form.rates_of, address or str(Path(place) / "broker"), log_of=log_of)
        try:
            yield broker
        finally:
            broker.close()


def _address(chosen: Chosen) -> Address | None:
    """Workers on other machines need a port; those of this one a socket."""
    return None if chosen[0] == "local" else (own_address(), 0)


def _engine(lock: Lock, folder: SweepFolder, chosen: Chosen) -> Engine:
    name, slots, address = chosen
    form = lock.form
    most = max((task.limits.cpus for task in lock.tasks.values()), default=1.0)
    if name == "local":
        return LocalEngine(slots, form.gpus, most, log=folder.root / "workers.log")
    try:
        from runner.sweep.ray_engine import RayEngine
    except ImportError as error:
        raise EnvironmentProblem(
            f"--engine ray needs Ray: pip install 'automedbench[ray]' ({error})"
        ) from None
    memory = max((task.limits.memory_mb for task in lock.tasks.values()), default=0)
    needs = Needs(gpus=form.gpus, cpus=most, memory_mb=memory, docker=form.sandbox == "docker")
    return RayEngine(address, needs=needs, slots=slots)


@contextlib.contextmanager
def _listening(driver: Driver) -> Iterator[list[int]]:
    """The first signal drains, the second breaks off; yields the signals that were heard."""
    heard: list[int] = []

    def hear(number: int, _frame: FrameType | None) -> None:
        heard.append(number)
        driver.stop = min(2, len(heard))
        driver.why = (
            f"{signal.Signals(number).name}; once more to break off" if driver.stop == 1 else "stopped"
        )

    before = {number: signal.signal(number, hear) for number in SIGNALS}
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _left(driver: Driver) -> dict[str, list[str]]:
    left: dict[str, list[str]] = {}
    for key, reason in driver.missing.items():
        left.setdefault(reason, []).append(key)
    return left
