"""What a run has used and what it may use: working time, turns, tokens, cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from evaluator.trace import LimitHit, Usage
from tasks.schema import Limits


class Budget:
    """The meter of one run; its clock starts when it is made.

    Working time is wall time without the waiting for the model provider (back-off and failed tries), so
    that a busy provider does not take it from the agent. Waiting has a cap of its own,
    ``limits.wall_seconds`` again, so that a run always ends.

    Parameters
    ----------
    limits : Limits
        Seconds, counts and US dollars.
    clock : callable
        Seconds, monotonic.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self.clock = clock
        self.turns = 0
        self.usage = Usage()
        self.cost_usd: float | None = None
        self._started = clock()
        self._waited = 0.0

    def count_turn(self, usage: Usage, cost_usd: float | None) -> None:
        """Book one reply of the model."""
        self.turns += 1
        self.usage = Usage(
            input=self.usage.input + usage.input,
            output=self.usage.output + usage.output,
            cached=self.usage.cached + usage.cached,
        )
        if cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + cost_usd

    @property
    def tokens(self) -> int:
        return self.usage.input + self.usage.output

    def wall_seconds(self) -> float:
        return self.clock() - self._started

    def working_seconds(self) -> float:
        return max(0.0, self.wall_seconds() - self._waited)

    def remaining_seconds(self) -> float:
        """Working time left; 0 when it is used up."""
        return max(0.0, self.limits.wall_seconds - self.working_seconds())

    def remaining_waiting(self) -> float:
        """How much longer the run may wait for its provider."""
        return max(0.0, self.limits.wall_seconds - self._waited)

    def call_deadline(self) -> float:
        """Seconds that a tool call which starts now may take."""
        return min(self.limits.call_seconds, self.remaining_seconds())

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Time spent inside is not working time."""
        started = self.clock()
        try:
            yield
        finally:
            self.exclude(self.clock() - started)

    def exclude(self, seconds: float) -> None:
        """Take ``seconds`` that have just passed out of the working time."""
        self._waited += max(0.0, seconds)

    def check(self) -> LimitHit | None:
        """The limit that forbids another turn, if any."""
        limits = self.limits
        used: tuple[tuple[str, float, float | None], ...] = (
            ("time", self.working_seconds(), limits.wall_seconds),
            ("turns", self.turns, limits.turns),
            ("tokens", self.tokens, limits.tokens),
            ("cost", self.cost_usd or 0.0, limits.cost_usd),
        )
        for name, value, allowed in used:
            if allowed is not None and value >= allowed:
                return LimitHit.model_validate({"limit": name, "used": round(value, 4), "allowed": allowed})
        return None
