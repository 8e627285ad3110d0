"""SIGKILL of the runner at random moments: nothing is left behind, and the next run finishes the cell."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from evaluator.trace import read_trace
from hf_datasets.records import load_record

WORK = (
    "import time, pathlib\nfor i in range(4):\n    pathlib.Path(f'file{i}').write_text('x'); time.sleep(0.3)"
)
LEFT_WITHIN = 30.0


def containers_below(folder: Path, *, started: bool = False) -> list[str]:
    """Containers that mount something below the folder; with ``started`` those alone that ever ran.

    One that was made and not yet started when its runner was killed holds nothing and runs nothing: the next run
    removes it.
    """
    import docker

    client = docker.from_env()
    try:
        every = client.api.containers(all=True, filters={"label": "automedbench.owner"})
    finally:
        client.close()
    return [
        one["Names"][0]
        for one in every
        if any(str(folder) in mount["Source"] for mount in one["Mounts"])
        and not (started and one["State"] == "created")
    ]


def processes_below(folder: Path) -> list[str]:
    """Commands of living processes that mention the folder or have a mount of it in their own mount table."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            mounts = (entry / "mountinfo").read_text()
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in mounts or (str(folder) in line and "pytest" not in line):
            found.append(line)
    return found


@pytest.mark.slow
def test_killed_at_ten_moments(command, sandbox, replayed):
    cell = dict(agents=replayed(WORK), agent="scripted", sandbox=sandbox)
    assert command.run(**cell, repeat=90).code == 0  # makes the phantom
    started = time.monotonic()
    assert command.run(**cell, repeat=91).code == 0
    whole = time.monotonic() - started
    moments = random.Random(7)
    repeat = 0
    for _ in range(10):
        process = command.start(**cell, repeat=repeat)
        time.sleep(moments.uniform(0.05, 0.95) * whole)
        process.kill()
        process.wait()
        process.stderr.close()
        deadline = time.monotonic() + LEFT_WITHIN
        while left := (
            processes_below(command.runs) or (sandbox == "docker" and containers_below(command.runs))
        ):
            assert time.monotonic() < deadline, left
            time.sleep(0.2)
        folder = command.folder(agent="scripted", repeat=repeat)
        if (folder / "trace.jsonl").is_file():
            read_trace(folder / "trace.jsonl")
        repeat += (folder / "record.json").is_file()

    assert command.run(**cell, repeat=repeat).code == 0
    folder = command.folder(agent="scripted", repeat=repeat)
    record = load_record(folder / "record.json")
    assert record.end_reason.value == "submitted"
    assert record.attempt == 1 + len(list(folder.parent.glob(f"{folder.name}.attempt*")))
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    assert sandbox != "docker" or containers_below(command.runs) == []
