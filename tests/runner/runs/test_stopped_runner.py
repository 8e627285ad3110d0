"""SIGINT, SIGTERM and SIGHUP of the runner, once and again: it stops in order, and the next run finishes the cell."""

from __future__ import annotations

import secrets
import signal
import time
from pathlib import Path

import pytest

from hf_datasets.records import load_record

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def processes_with(word: str) -> list[str]:
    """Command lines of living processes of the whole machine, sandboxes included."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if word in line:
                found.append(line)
    return found


def owned_by(pid: int) -> list[Path]:
    """Control groups of sandboxes that the process made, whose names say so."""
    return [path for path in Path("/sys/fs/cgroup").rglob(f"*automedbench*{pid}*") if path.is_dir()]


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("times", [1, 3])
def test_a_stopped_run_leaves_nothing_and_is_finished_by_the_next(command, sandbox, replayed, number, times):
    word = f"4711.{secrets.randbelow(10**9)}"
    code = f"setsid sleep {word} & sleep {word}"
    cell = dict(agents=replayed(code, language="bash"), agent="scripted", sandbox=sandbox)
    process = command.start(**cell)
    give_up = time.monotonic() + 60
    while not processes_with(word):
        assert time.monotonic() < give_up
        time.sleep(0.05)
    for _ in range(times):
        process.send_signal(number)
        time.sleep(0.02)
    _, err = process.communicate(timeout=30)
    assert process.returncode in (128 + number, -number)
    assert err.decode().splitlines()[-1] == (
        f"error: stopped by {number.name}; the same command goes on or starts the run afresh"
    )
    assert b"Traceback" not in err
    assert processes_with(word) == []
    assert owned_by(process.pid) == []

    profiles = replayed("echo done", language="bash")
    assert command.run(**{**cell, "agents": profiles}).code == 0
    record = load_record(command.folder(agent="scripted") / "record.json")
    assert (record.end_reason.value, record.attempt) == ("submitted", 2)


@pytest.mark.parametrize("after", [0.05, 0.1, 0.15, 0.25])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_it_starts_is_no_traceback(command, number, after):
    process = command.start()
    time.sleep(after)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode in (128 + number, -number)
    if after > 0.1:  # before that, Python itself may still be starting
        assert b"Traceback" not in err
