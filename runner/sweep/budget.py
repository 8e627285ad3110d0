"""What a sweep may spend, as a whole and by agent: reserved before each request, so that it is not overshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from runner.errors import UsageProblem
from runner.sweep.engine import Spend
from runner.sweep.form import Budget, Cap

Answer = Literal["yes", "wait", "no"]


@dataclass
class Purse:
    """One cap and what has gone from it. US dollars and tokens; ``reserved`` is for requests under way."""

    cap: Cap
    usd: float = 0.0
    tokens: int = 0
    reserved_usd: float = 0.0
    reserved_tokens: int = 0

    def may_take(self, usd: float, tokens: int) -> Answer:
        """Whether so much may be reserved: not before others have come back, or not at all."""
        if not (_fits(self.usd + usd, self.cap.usd) and _fits(self.tokens + tokens, self.cap.tokens)):
            return "no"
        now = _fits(self.usd + self.reserved_usd + usd, self.cap.usd)
        now = now and _fits(self.tokens + self.reserved_tokens + tokens, self.cap.tokens)
        return "yes" if now else "wait"

    def words(self) -> str:
        parts = []
        if self.cap.usd is not None:
            parts.append(f"{self.usd:.4f} of {self.cap.usd:g} USD")
        if self.cap.tokens is not None:
            parts.append(f"{self.tokens:,} of {self.cap.tokens:,} tokens")
        return " and ".join(parts)


def _fits(amount: float, cap: float | None) -> bool:
    return cap is None or amount <= cap + 1e-9


class Purses:
    """The sweep's purse and those of its agents. Not safe for threads: the broker holds a lock."""

    def __init__(self, budget: Budget, spent: Spend, by_agent: Mapping[str, Spend]) -> None:
        self._sweep = _purse(budget, spent)
        self._agents = {name: _purse(cap, by_agent.get(name, Spend())) for name, cap in budget.agents.items()}

    def may_take(self, agent: str, usd: float | None, tokens: int) -> tuple[Answer, str]:
        """The answer of the strictest purse, and that purse in words."""
        answers = [(purse.may_take(usd or 0.0, tokens), name, purse) for name, purse in self._of(agent)]
        worst = max(answers, key=lambda one: ("yes", "wait", "no").index(one[0]))
        return worst[0], f"the budget of {worst[1]} is spent: {worst[2].words()}"

    def reserve(self, agent: str, usd: float | None, tokens: int) -> None:
        for _, purse in self._of(agent):
            purse.reserved_usd += usd or 0.0
            purse.reserved_tokens += tokens

    def release(self, agent: str, usd: float | None, tokens: int) -> None:
        self.reserve(agent, None if usd is None else -usd, -tokens)

    def pay(self, agent: str, usd: float | None, tokens: int) -> None:
        for _, purse in self._of(agent):
            purse.usd += usd or 0.0
            purse.tokens += tokens

    def is_spent(self, agent: str) -> str | None:
        """Words when nothing more may be asked for this agent."""
        for name, purse in self._of(agent):
            at_cap = purse.cap.usd is not None and purse.usd >= purse.cap.usd
            if at_cap or (purse.cap.tokens is not None and purse.tokens >= purse.cap.tokens):
                return f"the budget of {name} is spent: {purse.words()}"
        return None

    def _of(self, agent: str) -> list[tuple[str, Purse]]:
        own = self._agents.get(agent)
        return [("the sweep", self._sweep)] + ([(f"agent {agent}", own)] if own else [])


def _purse(cap: Cap, spent: Spend) -> Purse:
    tokens = spent.tokens_in + spent.tokens_out + spent.open_tokens
    return Purse(cap, spent.usd + spent.open_usd, tokens)


def require_prices(budget: Budget, priced: Mapping[str, bool]) -> None:
    """Refuse a budget in USD for agents whose prices are unknown; ``priced`` is by agent.

    Raises
    ------
    UsageProblem
        Names the first such agent.
    """
    for agent, known in sorted(priced.items()):
        own = budget.agents.get(agent)
        if not known and (budget.usd is not None or (own is not None and own.usd is not None)):
            raise UsageProblem(
                f"a budget in USD needs prices, and agent {agent!r} has none in its profile; "
                "add them or give a budget in tokens"
            )
