"""What a request to a provider passes before it is sent, and where its outcome is booked.

A run on its own passes nothing. A sweep installs a gate in each worker process, which shares rates and budgets among
all of them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from evaluator.trace import Usage

if TYPE_CHECKING:
    from runner.agents.failure import Failure
    from runner.agents.profiles import EndpointProfile

CHARS_PER_TOKEN = 3
"""Few, so that what is reserved for a request is seldom less than what it takes."""
UNBOUNDED_REPLY = 16_000


class BudgetSpent(Exception):
    """No request may be sent any more; says which budget. The run is broken off where it stands."""


class Ticket(Protocol):
    """Leave to send one request. Exactly one of its methods is called, unless the process dies."""

    @property
    def id(self) -> str:
        """Goes to the provider as ``X-Client-Request-Id``; empty for none."""
        ...

    def paid(self, usage: Usage | None, usd: float | None) -> None:
        """An answer came. ``usage`` None: the endpoint does not count."""
        ...

    def failed(self, failure: Failure) -> None: ...


class Gate(Protocol):
    """Hands out tickets."""

    def admit(self, provider: str, usage: Usage, usd: float | None, patience: float) -> Ticket | None:
        """Wait for leave to send a request that takes at most about ``usage`` and ``usd``.

        None when there was none within ``patience`` seconds.

        Raises
        ------
        BudgetSpent
            The request does not fit into what is left.
        """
        ...


class _Free:
    """Leave that nobody has to give."""

    id = ""

    def paid(self, usage: Usage | None, usd: float | None) -> None:
        pass

    def failed(self, failure: Failure) -> None:
        pass


FREE: Ticket = _Free()
_installed: list[Gate] = []


def install(gate: Gate | None) -> None:
    """Every later request of this process passes ``gate``; none with None."""
    _installed[:] = [] if gate is None else [gate]


def admit(
    profile: EndpointProfile, messages: Sequence[dict[str, Any]], patience: float = float("inf")
) -> Ticket | None:
    """A ticket for sending ``messages``; see :meth:`Gate.admit`."""
    if not _installed:
        return FREE
    most = Usage(
        input=len(json.dumps(messages, default=str)) // CHARS_PER_TOKEN,
        output=profile.max_output_tokens or UNBOUNDED_REPLY,
    )
    usd = profile.prices.cost(most) if profile.prices else None
    return _installed[0].admit(provider_of(profile), most, usd, patience)


def provider_of(profile: EndpointProfile) -> str:
    """Host, and port where one is named, of the endpoint: who shares a provider shares its rates."""
    return urlsplit(profile.base_url).netloc.rpartition("@")[2]
