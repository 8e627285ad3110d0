"""The deterministic judge: a fixed rule per item, from host-observed facts only.

Where facts cannot tell, the item is 0 and says so; a rule never believes a text. What the facts rest on, and
what it would cost to fake them:

- The host saw files appear between calls, with sizes, so order is known from call to call but not within one
  call. Faking an order means working in that order.
- An output was read back when its access time passed its modification time, seen from outside the sandbox.
  Faking it means reading it.
- Exit codes and the amount printed are the host's own. A command can be made to succeed by doing nothing, so
  success alone is credited only where a complete case followed.
- A file of weights was read when its access time passed its modification time. Reading it is not yet loading
  it, but nothing less than a look from inside shows more.
- The shape of an input is known to the host and not stated in the brief; printing it takes opening the file.
- The words of plan.md earn nothing: a plan counts because it is there, early, and long enough to be one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from evaluator.judge.attempts import MAX_RETRIES, Moment
from evaluator.judge.evidence import Evidence
from evaluator.judge.judgement import Judgement
from evaluator.judge.settle import Verdict, conclude, settled
from evaluator.rubric import HostFact, Item, Rubric
from tasks.schema import Tier

Rule = Callable[[Evidence], Verdict]


def judge_by_rules(evidence: Evidence, rubric: Rubric, tier: Tier) -> Judgement:
    """Decide every item of a rubric; the same evidence always gives the same judgement.

    Returns
    -------
    Judgement
        All items with value, reason and event numbers; S1-S3 in [0, 1], never None.
    """
    verdicts: dict[str, Verdict] = {}
    for item in rubric.items:
        verdicts[item.id] = settled(item, tier, evidence, verdicts) or decide(item, evidence)
    return conclude(rubric, evidence, verdicts, "rules")


def decide(item: Item, evidence: Evidence) -> Verdict:
    """What the rules say on one item, dependencies left aside."""
    if item.levels:
        return _highest_level(item, evidence)
    if rule := _RULES.get(item.id):
        return rule(evidence)
    return Verdict(0, "host-observed facts cannot tell; the rules credit nothing for words")


# --- S1 ------------------------------------------------------------------------------------------


def _plan_exists(evidence: Evidence) -> Verdict:
    """A readable plan at the end, of a plan's length already before the first case was complete."""
    if evidence.plan.problem:
        return Verdict(0, f"plan.md: {evidence.plan.problem}")
    written = evidence.plan_written
    if written is None:
        return Verdict(0, "plan.md was not seen to be written")
    if not written.is_before(evidence.first_case):
        return Verdict(
            0,
            "plan.md was not there before the first case was complete",
            _events(written, evidence.first_case),
        )
    return Verdict(
        1,
        f"plan.md of {evidence.plan.chars} characters, written before any case was complete",
        _events(written),
    )


def _plan_picture(evidence: Evidence) -> Verdict:
    picture = evidence.picture
    if picture.problem:
        return Verdict(0, f"plan.png: {picture.problem}")
    return Verdict(1, f"plan.png decodes, {picture.width} x {picture.height} pixels")


# --- S2 ------------------------------------------------------------------------------------------

_NO_CASE = "no case was ever complete, so the facts cannot tell whether the set-up worked"


def _weights_obtained(evidence: Evidence) -> Verdict:
    """A weight-like file was there before the first case; whether of the planned model cannot be seen."""
    early = [file for file in evidence.weights if file.at.is_before(evidence.first_case)]
    if not evidence.first_case:
        return Verdict(0, _NO_CASE)
    if not early:
        return Verdict(
            0, "weight-like files appeared only with or after the first case", _events(evidence.weights[0].at)
        )
    return Verdict(
        1, f"{early[0].size} bytes of weights appeared before the first case", _events(early[0].at)
    )


def _input_checked(evidence: Evidence) -> Verdict:
    """A public input was opened and its shape printed before the first output."""
    if evidence.inputs_shown:
        return Verdict(
            1, "the shape of a public input was printed before the first case", _events(evidence.inputs_shown)
        )
    if not evidence.inputs_known:
        return Verdict(0, "the host was not told the shapes of the inputs, so the facts cannot tell")
    return Verdict(0, "no command before the first case printed the shape of a public input")


def _environment_ready(evidence: Evidence) -> Verdict:
    """A command succeeded in an earlier call than the first case, and a case did become complete."""
    first_case = evidence.first_case
    if first_case is None:
        return Verdict(0, _NO_CASE)
    for attempt in evidence.attempts:
        if not attempt.failed and attempt.moment.is_before(first_case):
            return Verdict(
                1,
                "a command succeeded before the first case, and a case followed",
                _events(attempt.moment, first_case),
            )
    return Verdict(
        0, "no command succeeded before the call that completed the first case", _events(first_case)
    )


def _failures_fixed(evidence: Evidence) -> Verdict:
    """No kind of command that failed before the first case went on failing for five more tries.

    A kind of command that was given up after fewer tries was gone round: the case that followed shows it.
    """
    first_case = evidence.first_case
    if first_case is None:
        return Verdict(0, _NO_CASE)
    failures = [attempt for attempt in evidence.failures if attempt.seq < first_case.seq]
    stuck = [attempt for attempt in failures if attempt.fixed_by is None and attempt.retries >= MAX_RETRIES]
    if stuck:
        return Verdict(
            0, f"the same kind of command failed {MAX_RETRIES + 1} times in a row", (stuck[0].seq,)
        )
    if not failures:
        return Verdict(1, "no command failed before the first case", _events(first_case))
    return Verdict(
        1,
        f"{len(failures)} failed commands were put right or gone round",
        tuple(attempt.seq for attempt in failures),
    )


def _model_loaded(evidence: Evidence) -> Verdict:
    """On a machine without a GPU: weights were read, not later than in the call that completed the first case."""
    first_case, read = evidence.first_case, evidence.weights_read
    if evidence.gpu:
        return Verdict(0, "the trace does not show what a GPU held, so the facts cannot tell")
    if first_case is None:
        return Verdict(0, _NO_CASE)
    if read is None or not (read.is_before(first_case) or read.key == first_case.key):
        return Verdict(0, "no file of weights was seen to be read up to the first case", _events(first_case))
    return Verdict(
        1,
        "a file of weights was read, and a case became complete with it or after it",
        _events(read, first_case),
    )


# --- S3 ------------------------------------------------------------------------------------------

_FACTS: Mapping[HostFact, Callable[[Evidence], Moment | None]] = {
    "pilot_before_batch": lambda evidence: evidence.pilot,
    "pilot_inspected": lambda evidence: evidence.inspection,
}


def _highest_level(item: Item, evidence: Evidence) -> Verdict:
    """The highest level all of whose facts were observed, levels that need a judge's eye left aside."""
    seen = {fact: moment for fact, find in _FACTS.items() if (moment := find(evidence))}
    level = max(
        (level for level in item.levels if not level.judge_only and seen.keys() >= set(level.facts)),
        key=lambda level: level.value,
    )
    return Verdict(
        level.value, _pilot_story(evidence), _events(evidence.pilot, evidence.inspection, evidence.batch)
    )


def _pilot_story(evidence: Evidence) -> str:
    if evidence.first_case is None:
        return "no case was ever complete"
    if evidence.pilot is None:
        return f"more than {evidence.pilot_size} cases became complete before the agent could look at one"
    if evidence.inspection is None:
        return (
            "a pilot came before the batch, but its output was not seen to be read back and shown before it"
        )
    return "a pilot came before the batch, and its output was read back and something was shown before it"


def _events(*moments: Moment | None) -> tuple[int, ...]:
    return tuple(sorted({moment.seq for moment in moments if moment}))


_RULES: Mapping[str, Rule] = {
    "plan_exists": _plan_exists,
    "plan_picture": _plan_picture,
    "weights_obtained": _weights_obtained,
    "input_checked": _input_checked,
    "environment_ready": _environment_ready,
    "failures_fixed": _failures_fixed,
    "model_loaded": _model_loaded,
}
