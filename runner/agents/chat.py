"""A model behind an OpenAI-compatible endpoint, driving a session through its tool calls."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from evaluator.trace import Elided, EndReason, ProviderError, Usage
from runner.agents.failure import Failure
from runner.agents.gate import admit
from runner.agents.history import History
from runner.agents.patience import Patience
from runner.agents.profiles import ChatProfile
from runner.agents.provider import Provider
from runner.agents.wire import Completion
from runner.errors import UsageProblem
from runner.session import Session
from runner.tools import NUDGE

CUT_OFF = (
    "Your reply was cut off at its length limit before it held a tool call. Go on, with shorter replies."
)
RESERVED_TOKENS = 16_000
"""Of the context, kept free for the reply when the profile does not bound it."""


class ChatAgent:
    """One model in its tool loop.

    Parameters
    ----------
    name : str
        Of the profile.
    profile : ChatProfile
        Endpoint, model, prices, patience.
    key : str or None
        The provider's key.
    sleep, jitter : callable
        How to wait, and random numbers in [0, 1); replaced in tests.
    """

    def __init__(
        self,
        name: str,
        profile: ChatProfile,
        key: str | None,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.name = name
        self.model = profile.model
        self.price_source = f"{profile.prices.source}, {profile.prices.date}" if profile.prices else None
        self._profile = profile
        self._key = key
        self._sleep = sleep
        self._jitter = jitter

    def run(self, session: Session) -> None:
        profile = self._profile
        if session.budget.limits.cost_usd is not None and profile.prices is None:
            raise UsageProblem(f"a cost limit needs prices, and agent {self.name!r} has none in its profile")
        reserved = profile.max_output_tokens or RESERVED_TOKENS
        room = max(profile.context_tokens // 2, profile.context_tokens - reserved)
        history = History(session.brief.system, session.brief.text, room)
        with Provider(profile, self._key) as provider:
            while session.may_go_on() and self._take_turn(session, provider, history):
                pass

    def _take_turn(self, session: Session, provider: Provider, history: History) -> bool:
        clock = session.budget.clock
        started = clock()
        patience = Patience(self._profile.retries)
        completion = self._ask_patiently(session, provider, history, patience)
        if completion is None:
            return False
        usage = completion.usage or _estimated(history, completion)
        history.learn(usage.input)
        replies = session.turn(
            completion.text,
            completion.calls,
            usage=usage,
            cost_usd=self._profile.prices.cost(usage) if self._profile.prices else None,
            seconds=clock() - started,
            waited=patience.waited,
            finish=completion.finish,
        )
        history.add_turn(completion, replies)
        if not completion.calls:
            history.add_note(CUT_OFF if completion.finish == "length" else NUDGE)
        return session.ended is None

    def _ask_patiently(
        self, session: Session, provider: Provider, history: History, patience: Patience
    ) -> Completion | None:
        """A reply; None when the run has ended instead."""
        budget = session.budget
        self._note_elided(session, history.fit())
        while session.may_go_on():
            with budget.waiting():
                ticket = admit(self._profile, history.messages, budget.remaining_waiting())
            if ticket is None:
                session.end(EndReason.PROVIDER_ERROR, "no turn at the provider in all the time for waiting")
                break
            started = budget.clock()
            try:
                allowed = min(self._profile.request_seconds, budget.remaining_seconds())
                return provider.ask(history.messages, allowed, ticket=ticket)
            except Failure as failure:
                patience.tries += 1
                if not session.may_go_on():
                    break  # the working time ended inside the request; it is not the provider's
                budget.exclude(budget.clock() - started)
                self._after(failure, session, history, patience)
        return None

    def _after(self, failure: Failure, session: Session, history: History, patience: Patience) -> None:
        """Wait, shorten the history, or end the run, so that the next try makes sense."""
        budget = session.budget
        wait = patience.next_wait(failure, budget.remaining_waiting(), self._jitter())
        session.record(
            ProviderError(
                turn=budget.turns + 1,
                attempt=patience.tries,
                status=failure.status,
                message=failure.message,
                wait=round(wait or 0.0, 3),
            )
        )
        if failure.kind == "too_long":
            gone = history.shrink()
            self._note_elided(session, gone)
            if not gone:
                session.end(
                    EndReason.TOKENS, f"the history does not fit the model's context: {failure.message}"
                )
        elif wait is None:
            session.end(EndReason.PROVIDER_ERROR, f"{failure.message} (try {patience.tries})")
        else:
            with budget.waiting():
                self._sleep(wait)
            patience.waited += wait

    def _note_elided(self, session: Session, calls: tuple[str, ...]) -> None:
        if calls:
            session.record(Elided(turn=session.budget.turns + 1, calls=calls))


def _estimated(history: History, completion: Completion) -> Usage:
    """Tokens of a turn whose endpoint does not count, so that the token limit holds all the same."""
    written = len(completion.text) + sum(len(call.arguments) for call in completion.calls)
    return Usage(input=history.estimate(), output=written // 3)
