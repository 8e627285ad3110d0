"""How long one question to a provider is asked again."""

from __future__ import annotations

from dataclasses import dataclass

from runner.agents.failure import Failure
from runner.agents.profiles import Retries


@dataclass
class Patience:
    """The tries and the waiting of one question."""

    retries: Retries
    tries: int = 0
    waited: float = 0.0

    def next_wait(self, failure: Failure, allowed: float, jitter: float) -> float | None:
        """Seconds until the next try, None when there is none. ``jitter`` is in [0, 1).

        Doubling from ``first_wait``, of which a random part below a half is taken off, and never less than
        what the provider asked for.
        """
        if failure.kind != "retry" or self.tries >= self.retries.tries:
            return None
        doubled = self.retries.first_wait * 2.0 ** (self.tries - 1)
        wait = min(doubled, self.retries.longest_wait) * (1 - jitter / 2)
        wait = max(wait, failure.retry_after or 0.0)
        if wait > min(self.retries.total_wait - self.waited, allowed):
            return None
        return wait
