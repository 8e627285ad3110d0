"""The agent that does nothing: the floor of every score."""

from __future__ import annotations

import json

from evaluator.trace import Call
from runner.session import Session
from runner.tools import SUBMIT_RESULTS


class NoopAgent:
    """Submits an empty folder, and again after the refusal."""

    model = None
    price_source = None

    def __init__(self, name: str = "noop") -> None:
        self.name = name

    def run(self, session: Session) -> None:
        arguments = json.dumps({"summary": "Nothing was done."})
        while session.ended is None:
            session.turn("", [Call(id="submit", name=SUBMIT_RESULTS, arguments=arguments)])
