"""What the agent reads as the answer to a tool call: plain words, bounded output, and what is left of its
time.
"""

from __future__ import annotations

from collections.abc import Sequence

from runner.limits import Budget
from runner.sandbox.base import OUTPUT_HEAD, OUTPUT_TAIL, ExecResult
from tasks.schema import Limits

ANSWER_BYTES = 16 * 1024
TRACE_BYTES = OUTPUT_HEAD + OUTPUT_TAIL + 1024
MISSING_LISTED = 50


def clip(data: bytes, limit: int, dropped: int = 0) -> str:
    """``data`` as text of about ``limit`` bytes: head and tail, and between them how much is left out.

    Cuts fall between characters; bytes that are not UTF-8 become U+FFFD. ``dropped`` bytes were left out of the
    middle of ``data`` before.
    """
    if len(data) <= limit:
        return data.decode(errors="replace")
    half = limit // 2
    head = data[: _boundary(data, half)]
    tail = data[_boundary(data, len(data) - half) :]
    gap = f"[... {len(data) - len(head) - len(tail) + dropped} bytes left out ...]"
    return f"{head.decode(errors='replace')}\n{gap}\n{tail.decode(errors='replace')}"


def _boundary(data: bytes, index: int) -> int:
    """The nearest index at or before ``index`` where a UTF-8 character can begin."""
    for start in range(index, max(index - 4, -1), -1):
        if data[start] & 0xC0 != 0x80:
            return start
    return index


def exec_answer(result: ExecResult, deadline: float, budget: Budget) -> str:
    """The answer to ``execute_code``."""
    lines = [*_verdict(result, deadline, budget.limits)]
    if result.output:
        lines.append(f"output ({result.total_bytes} bytes):")
        lines.append(clip(result.output, ANSWER_BYTES, result.dropped_bytes))
    else:
        lines.append("no output")
    return "\n".join([*lines, what_is_left(budget)])


def _verdict(result: ExecResult, deadline: float, limits: Limits) -> list[str]:
    code = "no exit code" if result.exit_code is None else f"exit code {result.exit_code}"
    lines = [f"{code} after {result.seconds:.1f} s"]
    if result.timed_out:
        limit = "limit of one call" if deadline >= limits.call_seconds else "end of the run's working time"
        lines.append(
            f"Stopped after {deadline:.0f} s, the {limit}. Everything this call had started was ended."
        )
    if result.oom:
        lines.append(f"Out of memory: a process was killed at the sandbox's limit of {limits.memory_mb} MiB.")
    if result.disk_full:
        lines.append(
            f"The disk is full: /workspace may hold {limits.disk_mb} MiB. Delete what is not needed."
        )
    return lines


def refusal_answer(missing: Sequence[str], total: int, n_cases: int, budget: Budget) -> str:
    """The answer to the first, incomplete ``submit_results``."""
    listed = "\n".join(f"- {name}" for name in missing)
    more = f"\n- and {total - len(missing)} more" if total > len(missing) else ""
    return (
        f"Not accepted yet: {total} expected files are missing or unusable in /workspace/outputs "
        f"({n_cases} cases).\n{listed}{more}\n"
        "Complete them and submit again. The next submit is final, whatever is there.\n"
        + what_is_left(budget)
    )


def what_is_left(budget: Budget) -> str:
    seconds = round(budget.remaining_seconds())
    turns = max(0, budget.limits.turns - budget.turns)
    tokens = max(0, budget.limits.tokens - budget.tokens)
    left = f"[left: {seconds // 60} min {seconds % 60:02d} s of working time, {turns} turns, {tokens} tokens"
    if budget.limits.cost_usd is not None:
        left += f", {max(0.0, budget.limits.cost_usd - (budget.cost_usd or 0.0)):.2f} USD"
    return left + "]"
