"""Children that misbehave in every way a case can make them."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator.isolation import Budget, Death, map_isolated

BUDGET = Budget(cpu_seconds=2, wall_seconds=60, memory_mb=256)


def fail() -> None:
    raise ValueError("first line\nsecond\0line")


def spin() -> None:
    while True:
        pass


DEEDS: dict[str, Callable[[], object]] = {
    "segfault": lambda: ctypes.string_at(0),
    "hog": lambda: bytearray(1 << 40),
    "raise": fail,
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "spin": spin,
    "exit": lambda: os._exit(3),
    "sleep": lambda: time.sleep(60),
    "recurse": lambda: misbehave("recurse"),
    "shout": lambda: os.write(1, b"to the parent's terminal"),
}


def misbehave(how: str) -> str:
    if how in DEEDS:
        DEEDS[how]()
    return f"fine after {how}"


@pytest.mark.parametrize(
    ("how", "kind", "word"),
    [
        ("segfault", "crash", "SIGSEGV"),
        ("hog", "limit", "256 MiB"),
        ("raise", "error", "ValueError: first line secondline"),
        ("killed", "limit", "killed"),
        ("spin", "limit", "processor time"),
        ("exit", "crash", "exit code 3"),
        ("recurse", "error", "RecursionError"),
    ],
)
def test_a_death_is_named_and_neighbours_live(how: str, kind: str, word: str) -> None:
    first, death, last = map_isolated(misbehave, ["before", how, "behind"], BUDGET, 2)
    assert (first, last) == ("fine after before", "fine after behind")
    assert isinstance(death, Death)
    assert death.kind == kind
    assert word in death.message


def test_a_child_that_waits_is_ended_by_the_clock() -> None:
    started = time.monotonic()
    (death,) = map_isolated(misbehave, ["sleep"], Budget(wall_seconds=0.3), 1)
    assert time.monotonic() - started < 3
    assert isinstance(death, Death)
    assert death.kind == "limit"


def test_what_children_print_goes_nowhere(capfd: pytest.CaptureFixture[str]) -> None:
    map_isolated(misbehave, ["shout"], BUDGET, 1)
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("jobs", [1, 3, 64])
def test_answers_keep_the_order_of_their_items(jobs: int) -> None:
    def late(number: int) -> str:
        time.sleep(0.02 * (number % 3))
        return f"{number}:{'x' * 200_000}"

    answers = map_isolated(late, list(range(9)), BUDGET, jobs)
    assert [str(answer).partition(":")[0] for answer in answers] == [str(number) for number in range(9)]


def test_two_that_need_all_the_room_get_it_one_after_the_other() -> None:
    def large(number: int) -> str:
        block = bytearray(160 << 20)
        block[:: 1 << 12] = b"x" * len(block[:: 1 << 12])
        time.sleep(0.4)
        return f"{number} of {len(block) >> 20} MiB"

    assert map_isolated(large, [0, 1, 2], BUDGET, 3) == [f"{n} of 160 MiB" for n in range(3)]


def test_no_item_gives_no_answer() -> None:
    assert map_isolated(misbehave, [], BUDGET, 4) == []


def open_files() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def test_nothing_is_left_behind() -> None:
    before = open_files()
    map_isolated(misbehave, ["sleep", "raise", "fine"], Budget(wall_seconds=0.3), 2)
    assert open_files() == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
