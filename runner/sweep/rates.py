"""How fast one provider may be asked: a token bucket, and a concurrency that falls when it says 429."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from runner.sweep.form import ProviderRates

BURST_SECONDS = 10.0
"""How much of an unused rate is kept: what was not asked for longer than this is lost."""
HOLD_SECONDS = 1.0
"""Nobody asks for so long after a 429 that does not say how long."""


class _Bucket:
    """So many units a minute; a debt is paid off before anything goes out again."""

    def __init__(self, per_minute: float | None, now: float) -> None:
        self._rate = None if per_minute is None else per_minute / 60
        self._most = math.inf if self._rate is None else max(1.0, self._rate * BURST_SECONDS)
        self._level = self._most
        self._at = now

    def wait(self, now: float) -> float:
        """Seconds until something may be taken."""
        if self._rate is None:
            return 0.0
        self._level = min(self._most, self._level + (now - self._at) * self._rate)
        self._at = now
        needed = min(1.0, self._most)
        # A remainder that rounding leaves must not make the wait zero and the answer no.
        return 0.0 if self._level >= needed - 1e-9 else (needed - self._level) / self._rate

    def take(self, amount: float) -> None:
        if self._rate is not None:
            self._level -= amount


class Rates:
    """The pace of one provider, shared by everybody who asks it. Not safe for threads: the broker holds a lock.

    A request is sent when the buckets allow it, fewer than ``window`` requests are under way, and no ``Retry-After``
    is running. A 429 halves what is under way, once for all requests that were sent before the cut; each answer to a
    later request widens the window a little, by one for a whole window of answers.

    Parameters
    ----------
    limits : ProviderRates
        What the provider allows.
    clock : callable
        Seconds, monotonic.

    Attributes
    ----------
    in_flight : int
    window : float
        Most requests at a time just now.
    cuts : int
        How often it was cut.
    """

    def __init__(self, limits: ProviderRates, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._most = float(limits.concurrency)
        self._requests = _Bucket(limits.requests_per_minute, clock())
        self._tokens = _Bucket(limits.tokens_per_minute, clock())
        self._closed_until = -math.inf
        self._cut_at = -math.inf
        self.window = self._most
        self.in_flight = 0
        self.cuts = 0

    def wait(self) -> float:
        """Seconds until a request may be sent; infinite until another one has come back."""
        if self.in_flight >= max(1, math.floor(self.window)):
            return math.inf
        now = self._clock()
        return max(self._closed_until - now, self._requests.wait(now), self._tokens.wait(now), 0.0)

    def sent(self, tokens: int) -> float:
        """Book a request of about ``tokens``; the moment it was sent, to be given back with its end."""
        self.in_flight += 1
        self._requests.take(1)
        self._tokens.take(tokens)
        return self._clock()

    def answered(self, sent_at: float, reserved: int, tokens: int) -> None:
        """An answer came and took ``tokens`` instead of the ``reserved`` ones."""
        self.in_flight -= 1
        self._tokens.take(tokens - reserved)
        if sent_at >= self._cut_at:
            self.window = min(self._most, self.window + 1 / self.window)

    def failed(self, reserved: int) -> None:
        """No answer, for any other reason than the pace."""
        self.in_flight -= 1
        self._tokens.take(-reserved)

    def throttled(self, sent_at: float, reserved: int, retry_after: float | None) -> None:
        """The provider said 429."""
        under_way = self.in_flight
        self.failed(reserved)
        now = self._clock()
        self._closed_until = max(
            self._closed_until, now + (HOLD_SECONDS if retry_after is None else retry_after)
        )
        if sent_at >= self._cut_at:
            self.window = max(1.0, min(self.window, float(under_way)) / 2)
            self._cut_at = now
            self.cuts += 1
