"""What a run is told and when it ends, from what its framework reports to the host."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from runner.policy.audit import training_signs
from runner.policy.gpu import BusySpan, GpuWatch
from runner.sandbox.base import Mount
from runner.sandbox.inside import SITE
from runner.scratch import scratch_folder

HOOK, CHANNEL = "/opt/watch/hook", "/opt/watch/channel"
STEPS = "steps"
LEAST_STEPS = 20
"""Fewer steps than these are no training: a check of a gradient, a calibration of two values."""

READ_BYTES = 1024 * 1024
MOST_PROCESSES = 1000

WARNING = (
    "WARNING from the benchmark: this call trained a model (an optimizer changed its parameters). Rule 1 allows "
    "inference only. Stop whatever still trains and do not use what was trained. The next time the run is disqualified."
)

Kind = Literal["gradient_steps", "training_code", "gpu_pattern"]
Action = Literal["noted", "warned", "ended"]


@dataclass(frozen=True)
class Sign:
    """Something that was seen, and what followed from it."""

    sign: Kind
    action: Action
    detail: str


class PolicyWatch:
    """Looks after every call.

    Parameters
    ----------
    read : callable
        What the framework has reported, as bytes of JSON lines.
    spans : callable, optional
        Long busy spans of the run's GPUs.

    Attributes
    ----------
    mounts, env
        What the sandbox needs for the framework to report at all.
    """

    def __init__(
        self,
        read: Callable[[], bytes],
        spans: Callable[[], Sequence[BusySpan]] = tuple,
        mounts: tuple[Mount, ...] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.mounts = mounts
        self.env = dict(env or {})
        self._read = read
        self._spans = spans
        self._counted: dict[str, int] = {}
        self._warned = False
        self._forgiven: frozenset[str] = frozenset()
        self._noted: set[str] = set()

    def after_call(self, language: str, code: str) -> list[Sign]:
        """What this call has shown; at most one sign of gradient steps, and each advisory one once a run."""
        signs = [Sign("training_code", "noted", text) for text in self._new(_audited(language, code))]
        busy = [f"GPU {span.gpu} busy without a pause" for span in self._spans()]
        signs += [Sign("gpu_pattern", "noted", text) for text in self._new(busy)]
        steps = self._look()
        return [*signs, steps] if steps else signs

    def _new(self, texts: Sequence[str]) -> list[str]:
        new = [text for text in dict.fromkeys(texts) if text not in self._noted]
        self._noted.update(new)
        return new

    def _look(self) -> Sign | None:
        counts = parse_counts(self._read())
        grown = {
            process: steps - self._counted.get(process, 0)
            for process, steps in counts.items()
            if steps - self._counted.get(process, 0) >= LEAST_STEPS
        }
        self._counted |= {process: counts[process] for process in grown}
        forgiven, self._forgiven = self._forgiven, frozenset()
        if not grown:
            return None
        detail = f"{sum(grown.values())} optimizer steps changed parameters"
        if not self._warned:
            # What already runs in the background cannot have read the warning: the next call may still end it.
            self._warned, self._forgiven = True, frozenset(counts)
            return Sign("gradient_steps", "warned", detail)
        if grown.keys() <= forgiven:
            return Sign(
                "gradient_steps", "noted", f"{detail}, in a process that was begun before the warning"
            )
        return Sign("gradient_steps", "ended", f"{detail}, after a warning")


def parse_counts(data: bytes) -> dict[str, int]:
    """Steps by process. The channel is open to the agent: what is no report says nothing, and nobody but the agent
    itself is hurt by one that is forged.
    """
    counts: dict[str, int] = {}
    for line in data.splitlines():
        try:
            match json.loads(line):
                case {"process": str(process), "steps": int(steps)} if len(counts) < MOST_PROCESSES:
                    counts[process[:80]] = max(counts.get(process[:80], 0), min(steps, 10**12))
        except (ValueError, RecursionError):
            continue
    return counts


@contextlib.contextmanager
def policy_watch(wanted: bool, gpus: Sequence[str] = ()) -> Iterator[PolicyWatch | None]:
    """A watch with its hook and channel laid out for the sandbox; None when it is not wanted."""
    if not wanted:
        yield None
        return
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(scratch_folder())
        hook, channel = folder / "hook", folder / "channel"
        for place in (hook, channel):
            place.mkdir()
            place.chmod(0o755)
        module = hook / "sitecustomize.py"
        module.write_bytes((Path(__file__).parent / "hook" / module.name).read_bytes())
        module.chmod(0o444)
        spans: Callable[[], Sequence[BusySpan]] = tuple
        if gpus:
            spans = stack.enter_context(contextlib.closing(GpuWatch(gpus))).spans
        yield PolicyWatch(
            read=lambda: _tail(channel / STEPS),
            spans=spans,
            mounts=(Mount(hook, HOOK), Mount(channel, CHANNEL, writable=True)),
            env={
                "AUTOMEDBENCH_TRAINING_CHANNEL": f"{CHANNEL}/{STEPS}",
                "PYTHONPATH": f"{HOOK}:{SITE}",
            },
        )


def _audited(language: str, code: str) -> tuple[str, ...]:
    return training_signs(code) if language == "python" else ()


def _tail(path: Path) -> bytes:
    """The last part of a file in a folder that the agent may write to: no link is followed, nothing is waited for."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            return b""
        return os.pread(handle, READ_BYTES, max(0, state.st_size - READ_BYTES))
    finally:
        os.close(handle)
