"""The contract of an agent: something that drives a session until it ends."""

from __future__ import annotations

from typing import Protocol

from runner.session import Session


class Agent(Protocol):
    """What proposes the next step. It sees the brief and the answers of the tools, never the sandbox or the
    trace.
    """

    @property
    def name(self) -> str:
        """As in ``--agent`` and in the run folder's path."""
        ...

    @property
    def model(self) -> str | None:
        """Id at the provider; None when no model is behind it."""
        ...

    @property
    def price_source(self) -> str | None:
        """Where the prices behind ``cost_usd`` come from; None where no cost is known."""
        ...

    def run(self, session: Session) -> None:
        """Take turns until ``session.ended`` is set.

        What fails on the way to a model is the agent's to end (``session.end(EndReason.PROVIDER_ERROR,
        ...)``); an agent that just returns is taken to have stopped.
        """
        ...
