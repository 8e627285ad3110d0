"""The host's side of a run: takes what the agent says, runs its calls in the sandbox, holds the limits and
writes the trace.

Every agent, whatever drives it, goes through :meth:`Session.turn`; nothing that enters the trace comes from
inside the sandbox except the output that the host itself read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from evaluator.submission import missing_outputs
from evaluator.trace import (
    Call,
    End,
    EndReason,
    Event,
    Exec,
    PolicySign,
    Reply,
    RunStarted,
    Submit,
    ToolError,
    Usage,
)
from runner.answers import MISSING_LISTED, TRACE_BYTES, clip, exec_answer, refusal_answer
from runner.limits import Budget
from runner.policy import WARNING, PolicyWatch
from runner.sandbox.base import ExecResult, Sandbox, SandboxDead
from runner.tools import MAX_ARGUMENT_BYTES, ExecuteCode, Language, Malformed, SubmitResults, parse_call
from runner.trace import TraceWriter, plain
from runner.workspace import WorkspaceWatch
from tasks.schema import OUTPUT_ROOT, Task

if TYPE_CHECKING:
    from runner.cell import CellFile
    from tasks.brief import Brief

MALFORMED_IN_A_ROW = 5
TEXT_ONLY_IN_A_ROW = 3

# One exec: the code comes in on stdin and is kept in a file, so that tracebacks name it; the program itself
# gets an empty stdin. Python finds modules in the workspace, as it would for a script that lies there.
_RUN = 'mkdir -p /tmp/calls && cat > "$1" && shift && exec "$@" </dev/null'
_PYTHON = 'export PYTHONPATH="/workspace${PYTHONPATH:+:$PYTHONPATH}"; '


@dataclass(frozen=True)
class ToolReply:
    """The answer to one call."""

    call_id: str
    text: str
    is_error: bool


class Watch(Protocol):
    """Told of every event after it was written; for progress displays."""

    def __call__(self, event: Event, session: Session) -> None: ...


class Session:
    """One run of one agent on one task.

    Parameters
    ----------
    task, brief
        What is asked. Agents read ``session.task``, ``session.brief`` and ``session.case_ids``.
    sandbox : Sandbox
        Started; the session does not stop it.
    trace : TraceWriter
        Open; the session does not close it.
    budget : Budget
        Its clock runs since it was made.
    workspace : Path
        The host's side of ``/workspace``.
    case_ids : sequence of str
        The manifest's cases.
    cell : CellFile, optional
        Written to the trace as its first event.
    watch : Watch, optional
        Called after every event.
    before_call : str
        Shell text that runs inside before every call.
    policy : PolicyWatch, optional
        Looks for training after every call.

    Attributes
    ----------
    ended : EndReason or None
        Set once the run is over; further calls are then answered with an error and leave no trace.
    detail : str
        More about the end, in words.
    """

    def __init__(
        self,
        task: Task,
        brief: Brief,
        sandbox: Sandbox,
        trace: TraceWriter,
        budget: Budget,
        workspace: Path,
        case_ids: Sequence[str],
        *,
        cell: CellFile | None = None,
        watch: Watch | None = None,
        before_call: str = "",
        policy: PolicyWatch | None = None,
    ) -> None:
        self.task = task
        self.brief = brief
        self.budget = budget
        self.case_ids = tuple(case_ids)
        self.ended: EndReason | None = None
        self.detail = ""
        self._sandbox = sandbox
        self._trace = trace
        self._outputs = workspace / OUTPUT_ROOT
        self._watch = watch
        self._before_call = before_call
        self._policy = policy
        self._malformed = 0
        self._text_only = 0
        self._refused = False
        self._calls = 0
        if cell is not None:
            self.record(_run_started(cell))
        self._workspace = WorkspaceWatch(workspace, case_ids, task.output.filenames)

    # --- what agents call -----------------------------------------------------------------------------------

    def turn(
        self,
        text: str,
        calls: Sequence[Call] = (),
        usage: Usage = Usage(),  # noqa: B008  (frozen)
        cost_usd: float | None = None,
        seconds: float = 0.0,
        waited: float = 0.0,
        finish: str = "",
    ) -> list[ToolReply]:
        """Record one reply of the agent and run its calls in order.

        Parameters
        ----------
        text : str
            What the agent said beside its calls.
        calls : sequence of Call
            As the agent wrote them. Without any, the agent layer should answer with ``runner.tools.NUDGE``.
        usage, cost_usd
            Tokens and US dollars of this reply; None when the price is not known.
        seconds, waited : float
            How long the reply took, and how much of that was waiting for the provider.
        finish : str
            The provider's finish reason. After ``length`` the last call is refused, because it may be cut.

        Returns
        -------
        list of ToolReply
            One for each call, in order.
        """
        if self.ended is not None:
            return [self._over(call.id) for call in calls]
        self.budget.count_turn(usage, cost_usd)
        calls = [_bounded(call) for call in calls]
        self.record(
            Reply(
                turn=self.budget.turns,
                text=plain(text)[:MAX_ARGUMENT_BYTES],
                calls=tuple(calls),
                usage=usage,
                cost_usd=cost_usd,
                seconds=round(seconds, 3),
                waited=round(waited, 3),
                finish=finish,
            )
        )
        replies = self._run_calls(calls, cut_off=finish == "length")
        self._count_text_only(bool(calls), finish)
        self.may_go_on()
        return replies

    def may_go_on(self) -> bool:
        """Whether another turn is allowed; ends the run when a limit is reached."""
        if self.ended is None and (hit := self.budget.check()) is not None:
            self.record(hit)
            self.end(EndReason(hit.limit), f"{hit.used:,.10g} of {hit.allowed:,.10g}")
        return self.ended is None

    def end(self, reason: EndReason, detail: str = "") -> None:
        """End the run; only the first end counts."""
        if self.ended is not None:
            return
        self.ended, self.detail = reason, plain(detail)
        budget = self.budget
        self.record(
            End(
                reason=reason,
                detail=self.detail,
                turns=budget.turns,
                usage=budget.usage,
                cost_usd=budget.cost_usd,
                working_seconds=round(budget.working_seconds(), 3),
                wall_seconds=round(budget.wall_seconds(), 3),
            )
        )

    def record(self, event: Event) -> None:
        """Append an event to the trace and show it to the watch."""
        written = self._trace.append(event)
        if self._watch is not None:
            self._watch(written, self)

    # --- calls ----------------------------------------------------------------------------------------------

    def _run_calls(self, calls: Sequence[Call], *, cut_off: bool) -> list[ToolReply]:
        replies: list[ToolReply] = []
        for index, call in enumerate(calls):
            if self.budget.remaining_seconds() <= 0:
                self.may_go_on()
            if self.ended is not None:
                replies.append(self._over(call.id))
                continue
            earlier = {before.id for before in calls[:index]}
            replies.append(
                self._run_call(parse_call(call, earlier, cut_off=cut_off and index == len(calls) - 1))
            )
        return replies

    def _run_call(self, call: ExecuteCode | SubmitResults | Malformed) -> ToolReply:
        if isinstance(call, Malformed):
            return self._refuse(call)
        self._malformed = 0
        if isinstance(call, SubmitResults):
            return self._submit(call)
        return self._execute(call)

    def _refuse(self, call: Malformed) -> ToolReply:
        self._malformed += 1
        self.record(ToolError(turn=self.budget.turns, call=call.id, kind=call.kind, message=call.message))
        if self._malformed >= MALFORMED_IN_A_ROW:
            self.end(
                EndReason.MALFORMED, f"{self._malformed} malformed calls in a row, the last: {call.message}"
            )
        return ToolReply(call.id, call.message, is_error=True)

    def _execute(self, call: ExecuteCode) -> ToolReply:
        deadline = self.budget.call_deadline()
        try:
            result = self._sandbox.exec(
                self._argv(call.language), deadline=deadline, stdin=call.code.encode(), cwd="/workspace"
            )
        except SandboxDead as error:
            self.end(EndReason.INFRA_ERROR, f"the sandbox is gone: {error}")
            return self._over(call.id)
        self.record(self._exec_event(call, result))
        self.record(self._workspace.look(self.budget.turns, call.id))
        note = self._note_of_policy(call)
        return ToolReply(call.id, exec_answer(result, deadline, self.budget) + note, is_error=False)

    def _note_of_policy(self, call: ExecuteCode) -> str:
        """What the agent is told about training, if anything; a second breach ends the run."""
        note = ""
        for sign in self._policy.after_call(call.language, call.code) if self._policy else ():
            self.record(
                PolicySign(
                    turn=self.budget.turns,
                    call=call.id,
                    sign=sign.sign,
                    action=sign.action,
                    detail=sign.detail,
                )
            )
            if sign.action == "warned":
                note = f"\n{WARNING}"
            elif sign.action == "ended":
                self.end(EndReason.POLICY, sign.detail)
        return note

    def _argv(self, language: Language) -> list[str]:
        self._calls += 1
        suffix, program = ("py", "python") if language == "python" else ("sh", "bash")
        path = f"/tmp/calls/call-{self._calls:04d}.{suffix}"
        setup = _PYTHON if language == "python" else ""
        return ["/bin/sh", "-c", self._before_call + setup + _RUN, "sh", path, program, path]

    def _exec_event(self, call: ExecuteCode, result: ExecResult) -> Exec:
        return Exec(
            turn=self.budget.turns,
            call=call.id,
            language=call.language,
            exit_code=result.exit_code,
            seconds=round(result.seconds, 3),
            output=clip(result.output, TRACE_BYTES),
            output_bytes=result.total_bytes,
            dropped_bytes=result.dropped_bytes,
            timed_out=result.timed_out,
            oom=result.oom,
            disk_full=result.disk_full,
        )

    def _submit(self, call: SubmitResults) -> ToolReply:
        missing = [plain(name) for name in missing_outputs(self.task, self.case_ids, self._outputs)]
        listed = tuple(missing[:MISSING_LISTED])
        accepted = not missing or self._refused
        self.record(
            Submit(
                turn=self.budget.turns,
                call=call.id,
                summary=call.summary,
                missing=listed,
                missing_total=len(missing),
                accepted=accepted,
            )
        )
        if accepted:
            self.end(EndReason.SUBMITTED, f"{len(missing)} expected files missing" if missing else "")
            return ToolReply(call.id, "Accepted. The run has ended.", is_error=False)
        self._refused = True
        answer = refusal_answer(listed, len(missing), len(self.case_ids), self.budget)
        return ToolReply(call.id, answer, is_error=True)

    def _count_text_only(self, has_calls: bool, finish: str) -> None:
        """Replies that were cut before a call could come do not count: the model is told, and turns and
        tokens bound it.
        """
        if has_calls:
            self._text_only = 0
        elif finish != "length":
            self._text_only += 1
        if self._text_only >= TEXT_ONLY_IN_A_ROW:
            # A provider's content filter is no breach of ours: the run is scored, not disqualified.
            cause = (
                ", the last one cut by the provider's content filter" if finish == "content_filter" else ""
            )
            self.end(EndReason.AGENT_STOP, f"{self._text_only} replies in a row without a tool call{cause}")

    def _over(self, call_id: str) -> ToolReply:
        return ToolReply(call_id, f"The run has ended ({self.ended}); the call was not run.", is_error=True)


def _bounded(call: Call) -> Call:
    """The call with at most one byte more than is allowed, so that a trace stays small and the call stays
    too large.
    """
    if len(call.arguments) <= MAX_ARGUMENT_BYTES:
        return call
    return call.model_copy(update={"arguments": call.arguments[: MAX_ARGUMENT_BYTES + 1]})


def _run_started(cell: CellFile) -> RunStarted:
    return RunStarted(
        at=cell.created_at.isoformat(timespec="microseconds"),
        task=cell.task,
        tier=cell.tier.value,
        release=cell.release.value,
        agent=cell.agent,
        model=cell.model,
        brief_sha256=cell.brief_sha256,
        cases=cell.n_cases,
    )
