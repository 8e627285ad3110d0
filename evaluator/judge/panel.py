"""Ask one judge several times, and keep every word of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from evaluator.judge.agreement import krippendorff_alpha
from evaluator.judge.judgement import Exchange, Panel
from evaluator.judge.prompt import SYSTEM, Message, Schema, messages
from evaluator.judge.reading import Opinion
from evaluator.trace import Usage

ASKED = 3
"""How often one vote is asked for what it left open or got wrong."""


@dataclass(frozen=True)
class Answer:
    """What an endpoint replied. ``usage`` and ``cost_usd`` are None where nobody says."""

    text: str
    finish: str = ""
    usage: Usage | None = None
    cost_usd: float | None = None
    seconds: float = 0.0


class NoAnswer(Exception):
    """The endpoint gave no answer within the tries it is allowed; the message says why."""


class Endpoint(Protocol):
    """A model that can be asked. It is patient by itself, within bounds."""

    def ask(self, request: list[Message], schema: Schema) -> Answer:
        """Answer one request in the form of ``schema``; raises ``NoAnswer``."""
        ...


Read = Callable[[str], tuple[dict[str, Opinion], dict[str, str]]]
"""Turns a reply into valid opinions and, for what is not valid, problems."""


@dataclass
class PanelOfOne:
    """One model, asked ``size`` times about the same evidence."""

    endpoint: Endpoint
    size: int
    evidence: str
    delimiter: str
    picture: bytes | None
    exchanges: list[Exchange] = field(default_factory=list)
    down: str | None = None

    def poll(
        self, ask_for: Callable[[dict[str, str]], tuple[str, Schema]], read: Read
    ) -> list[dict[str, Opinion]]:
        """The opinions of every vote.

        ``ask_for`` makes the question and its schema from the problems of the answer before (none at first). A vote
        is asked again, at most ``ASKED`` times in all, for what it has not validly answered. When the endpoint gives
        no answer, the votes that are left are missing.
        """
        ballots: list[dict[str, Opinion]] = []
        for vote in range(1, self.size + 1):
            ballot: dict[str, Opinion] = {}
            problems: dict[str, str] = {}
            for _ in range(ASKED):
                reply = self._ask(vote, *ask_for(problems))
                if reply is None:
                    break
                opinions, problems = read(reply)
                ballot = {**opinions, **ballot}
                problems = {name: why for name, why in problems.items() if name not in ballot}
                if not problems:
                    break
            ballots.append(ballot)
            if self.down:
                break
        return ballots

    def _ask(self, vote: int, question: str, schema: Schema) -> str | None:
        try:
            answer = self.endpoint.ask(messages(SYSTEM, self.evidence, self.picture, question), schema)
        except NoAnswer as error:
            self.down = str(error)
            self.exchanges.append(Exchange(vote=vote, question=question, reply=None, error=self.down))
            return None
        self.exchanges.append(
            Exchange(
                vote=vote,
                question=question,
                reply=answer.text,
                finish=answer.finish,
                usage=answer.usage,
                cost_usd=answer.cost_usd,
                seconds=round(answer.seconds, 3),
            )
        )
        return answer.text

    def record(self, first_question: str, votes: Iterable[tuple[float, ...]], *, tagged: bool) -> Panel:
        """What stands of it in the judgement."""
        words = "\0".join([SYSTEM, self.evidence, first_question]).replace(self.delimiter, "")
        usages = [one.usage for one in self.exchanges if one.usage]
        costs = [one.cost_usd for one in self.exchanges if one.cost_usd is not None]
        return Panel(
            size=self.size,
            prompt_sha256=hashlib.sha256(words.encode()).hexdigest(),
            system=SYSTEM,
            evidence=self.evidence,
            delimiter=self.delimiter,
            picture_sha256=hashlib.sha256(self.picture).hexdigest() if self.picture else None,
            exchanges=tuple(self.exchanges),
            tagged=tagged,
            tokens_in=sum(usage.input for usage in usages),
            tokens_out=sum(usage.output for usage in usages),
            cost_usd=sum(costs) if costs else None,
            alpha=krippendorff_alpha(votes),
        )
