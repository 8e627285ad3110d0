"""Ask a judge's model over the network: patiently, not faster than allowed, in the form of a JSON schema."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable
from typing import Any

from evaluator.judge.llm import LlmJudge, LlmSettings
from evaluator.judge.panel import Answer, NoAnswer
from evaluator.judge.prompt import Message, Schema
from runner.agents.failure import Failure
from runner.agents.gate import FREE, admit
from runner.agents.patience import Patience
from runner.agents.provider import Provider
from runner.judges import JudgeProfile

Sleep = Callable[[float], None]


class Pace:
    """Hands out moments to send a request, evenly spaced, to all threads that ask.

    Parameters
    ----------
    per_minute : float
        Requests a minute.
    """

    def __init__(
        self, per_minute: float, clock: Callable[[], float] = time.monotonic, sleep: Sleep = time.sleep
    ) -> None:
        self._gap = 60.0 / per_minute
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._next = 0.0

    def wait(self) -> None:
        """Sleep until this caller's moment."""
        with self._lock:
            moment = max(self._next, self._clock())
            self._next = moment + self._gap
        if (left := moment - self._clock()) > 0:
            self._sleep(left)

    def hold(self, seconds: float) -> None:
        """Nobody sends for so long: what one caller was told by the provider holds for all."""
        with self._lock:
            self._next = max(self._next, self._clock() + seconds)


class JudgeEndpoint:
    """The endpoint of a judge's profile, with the same patience as an agent's."""

    def __init__(
        self, profile: JudgeProfile, key: str | None, sleep: Sleep = time.sleep, pace: Pace | None = None
    ) -> None:
        self._profile = profile
        self._provider = Provider(profile, key)
        self._sleep = sleep
        self._pace = pace or Pace(profile.requests_per_minute)

    def ask(self, request: list[Message], schema: Schema) -> Answer:
        """One answer; raises ``NoAnswer`` when patience has run out or the provider will not."""
        patience = Patience(self._profile.retries)
        fields = _fields(self._profile, schema)
        while True:
            self._pace.wait()
            ticket = admit(self._profile, request) or FREE
            started = time.monotonic()
            try:
                completion = self._provider.ask(request, self._profile.request_seconds, fields, ticket)
            except Failure as failure:
                patience.tries += 1
                wait = patience.next_wait(failure, math.inf, random.random())
                if wait is None:
                    raise NoAnswer(
                        f"the judge gave no answer: {failure.message} (try {patience.tries})"
                    ) from None
                self._pace.hold(failure.retry_after or 0.0)
                self._sleep(wait)
                patience.waited += wait
                continue
            usage, prices = completion.usage, self._profile.prices
            return Answer(
                text=completion.text,
                finish=completion.finish,
                usage=usage,
                cost_usd=prices.cost(usage) if prices and usage else None,
                seconds=time.monotonic() - started,
            )


def _fields(profile: JudgeProfile, schema: Schema) -> dict[str, Any]:
    form = {"name": "judgement", "strict": True, "schema": schema}
    fields: dict[str, Any] = {"response_format": {"type": "json_schema", "json_schema": form}}
    return fields if profile.temperature is None else {**fields, "temperature": profile.temperature}


def llm_judge(profile: JudgeProfile, key: str | None) -> LlmJudge:
    """The judge of a profile."""
    return LlmJudge(llm_settings(profile), JudgeEndpoint(profile, key))


def llm_settings(profile: JudgeProfile) -> LlmSettings:
    """What of a profile makes the judge what it is; where it is reached and how fast is not."""
    decoding = {
        **profile.decoding,
        "temperature": profile.temperature,
        "max_tokens": profile.max_output_tokens,
    }
    return LlmSettings(
        model=profile.model,
        decoding=decoding,
        votes=profile.votes,
        evidence_tokens=profile.evidence_tokens,
        pictures=profile.pictures,
        tags=profile.tags,
    )
