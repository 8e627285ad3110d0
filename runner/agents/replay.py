"""Do again what a recorded trace says, call by call, against a new session."""

from __future__ import annotations

from pathlib import Path

from evaluator.trace import EndReason, Reply, RunStarted, TraceError, read_trace
from runner.errors import UsageProblem
from runner.session import Session


class ReplayAgent:
    """The replies of one trace, with their recorded tokens and cost; their calls are run anew.

    Parameters
    ----------
    name : str
        Of the profile.
    trace : Path
        A ``trace.jsonl``; read whole when the agent is made.

    Raises
    ------
    UsageProblem
        The trace cannot be read or holds no reply.
    """

    price_source = "as recorded"

    def __init__(self, name: str, trace: Path) -> None:
        self.name = name
        try:
            events = read_trace(trace)
        except OSError as error:
            raise UsageProblem(f"{trace}: expected a recorded trace; {error.strerror}") from None
        except TraceError as error:
            raise UsageProblem(f"cannot replay: {error}") from None
        self._replies = [event for event in events if isinstance(event, Reply)]
        if not self._replies:
            raise UsageProblem(f"{trace} holds no reply to replay")
        self.model = next((event.model for event in events if isinstance(event, RunStarted)), None)

    def run(self, session: Session) -> None:
        for reply in self._replies:
            if session.ended is not None:
                return
            session.turn(
                reply.text,
                reply.calls,
                usage=reply.usage,
                cost_usd=reply.cost_usd,
                seconds=reply.seconds,
                waited=reply.waited,
                finish=reply.finish,
            )
        session.end(EndReason.AGENT_STOP, "the recorded trace ends here")
