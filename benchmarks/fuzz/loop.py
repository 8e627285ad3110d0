"""Feed a target with damaged inputs; keep those that did something new, and those that did what must not happen.

The worker is a process of its own with a cap on memory. It writes each input down before it tries it, so that an input
that ends the process (a crash in a library, too much memory, no end) is known to the one who watches.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.fuzz.mutate import mutated
from benchmarks.fuzz.targets import Target

SECONDS_A_INPUT = 10
MEMORY = 2 << 30
LARGEST_KEPT = 4096
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where inputs lie: a real disk would spend the time on syncing them."""

LONGEST_WAIT = 12.0
"""How much longer than its time limit one input may take, as a factor, before its process is killed."""


@dataclass
class Tally:
    """What one target's fuzzing came to."""

    name: str
    inputs: int = 0
    wall: float = 0.0
    cpu: float = 0.0
    outcomes: int = 0
    findings: list[Path] = field(default_factory=list)

    def line(self) -> str:
        found = f"{len(self.findings)} findings" if self.findings else "nothing found"
        return (
            f"{self.name:<10} {self.inputs:>10} inputs  {self.wall:6.0f} s wall {self.cpu:6.0f} s cpu  "
            f"{self.outcomes:>5} outcomes  {found}"
        )


def outcome_of(target: Target, content: bytes, folder: Path) -> str:
    """What the target makes of an input: its answer, or where and with what it refused.

    Raises
    ------
    Exception
        Whatever is not a refusal: a finding.
    """
    with _time_limit():
        try:
            return target.run(content, folder)
        except target.refusals as refusal:
            words = re.sub(r"[^a-z ._]", "", str(refusal).lower())[-60:]
            return f"{getattr(refusal, 'code', words)} {_place(refusal)}"


def _place(error: BaseException) -> str:
    """The lines of this project that the error came through, which tell apart the ways a parser can refuse."""
    frames = traceback.extract_tb(error.__traceback__)
    return ",".join(f"{Path(frame.filename).stem}:{frame.lineno}" for frame in frames[2:])


@contextlib.contextmanager
def _time_limit() -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TimeoutError(f"no end after {SECONDS_A_INPUT} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS_A_INPUT)  # of its own work: others may have the machine
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def fuzz(target: Target, seconds: float, corpus: Path, findings: Path, seed: int) -> Tally:
    """Fuzz one target for so long; interesting inputs go to ``corpus``, harmful ones to ``findings``."""
    tally = Tally(target.name)
    began, cpu_before = time.monotonic(), _cpu_of_children()
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as place:
        current, counted = Path(place) / "current", Path(place) / "counted"
        while (left := began + seconds - time.monotonic()) > 0:
            pid = os.fork()
            if pid == 0:
                _work(target, left, corpus, findings, seed, current, counted)
            dead = _watch(pid, current)
            tally.inputs += _number(counted)
            if dead:
                _keep(findings, current.read_bytes(), dead)
            seed += 1
    tally.wall = time.monotonic() - began
    tally.cpu = _cpu_of_children() - cpu_before
    tally.outcomes = len(list(corpus.iterdir())) if corpus.is_dir() else 0
    tally.findings = sorted(findings.glob("*.bin")) if findings.is_dir() else []
    return tally


def _work(
    target: Target, seconds: float, corpus: Path, findings: Path, seed: int, current: Path, counted: Path
) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    code = 1
    try:
        _loop(target, seconds, corpus, findings, random.Random(seed), current, counted)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _loop(
    target: Target,
    seconds: float,
    corpus: Path,
    findings: Path,
    rng: random.Random,
    current: Path,
    counted: Path,
) -> None:
    end = time.monotonic() + seconds
    known: set[str] = set()
    pool: list[bytes] = []
    count = 0
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as scratch:

        def attempt(content: bytes, keep: bool) -> None:
            current.write_bytes(content)
            try:
                outcome = outcome_of(target, content, Path(scratch))
            except Exception as error:
                place = f"{type(error).__name__} {_place(error)}"
                if place not in known:  # once is enough to mend it
                    known.add(place)
                    _keep(findings, content, "".join(traceback.format_exception(error)))
                return
            if outcome not in known:
                known.add(outcome)
                pool.append(content)
                if keep and len(content) <= LARGEST_KEPT:
                    _keep(corpus, content, None)

        seeds = [*target.seeds(), *(path.read_bytes() for path in sorted(corpus.glob("*.bin")))]
        for content in seeds:
            attempt(content, keep=False)
        pool.extend(target.seeds())
        while time.monotonic() < end:
            attempt(mutated(rng, pool), keep=True)
            count += 1
            if count % 50 == 0:
                counted.write_text(str(count))
    counted.write_text(str(count))


def _watch(pid: int, current: Path) -> str | None:
    """Wait for the worker; why it died, if it did not end by itself."""
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return None if code == 0 else f"the process ended with {code}"
        with contextlib.suppress(OSError):
            if time.time() - current.stat().st_mtime > LONGEST_WAIT * SECONDS_A_INPUT:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                return "no end, and no interruption possible"
        time.sleep(0.2)


def _keep(folder: Path, content: bytes, words: str | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(content).hexdigest()[:16]
    (folder / f"{name}.bin").write_bytes(content)
    if words is not None:
        (folder / f"{name}.txt").write_text(words)


def _number(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
