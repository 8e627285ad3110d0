"""The notebook that a judge reads: facts, stages and events of a run within a budget of tokens.

Every event keeps its line and its number. Where room runs out, quotations lose their middle first, in proportion
to how little they say; only in a run of far more calls than the limits allow are neighbouring lines put together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from evaluator.fired import Stage
from evaluator.judge.attempts import Moment
from evaluator.judge.evidence import Evidence
from evaluator.judge.material import Material
from evaluator.judge.plan import plan_text
from evaluator.judge.quoting import fitted, masked, name, tokens, visible
from evaluator.judge.rows import Quote, Row, rows_of
from evaluator.judge.spans import stage_spans
from evaluator.rubric import Item

DEFAULT_TOKENS = 24_000
_HEADS_SHARE = 0.75
"""Lines may take this share of the budget before neighbours are put together."""
_PLAN_SHARE = 0.2
_LABEL_TOKENS = 12
_LEAST_TOKENS = 60


@dataclass(frozen=True)
class Notebook:
    """``text`` as the judge reads it; ``rows`` are all events that it may cite."""

    text: str
    rows: tuple[Row, ...]
    evidence: Evidence

    @cached_property
    def sha256(self) -> str:
        """Digest of everything that is shown, the plan's picture included."""
        return hashlib.sha256(f"{self.evidence.sha256}\0{self.text}".encode()).hexdigest()

    def may_rest_on(self, item: Item, seq: int) -> bool:
        """Whether event ``seq`` exists, is of a kind that the item may rest on, and lies in its stage."""
        row = self._by_seq.get(seq)
        return (
            row is not None and not row.kinds.isdisjoint(item.evidence) and self.is_in_stage(item.stage, seq)
        )

    def is_in_stage(self, stage: Stage, seq: int) -> bool:
        """Whether event ``seq`` exists and can speak about ``stage``.

        Plans rest on what came before the first case, set-up on what came up to it, validation on what came up to
        the batch. The plan's own files are always of S1.
        """
        row = self._by_seq.get(seq)
        first, batch = self.evidence.first_case, self.evidence.batch
        if row is None:
            return False
        if stage == "S1":
            return not row.kinds.isdisjoint({"plan", "picture"}) or _is_up_to(row, first, included=False)
        if stage == "S2":
            return _is_up_to(row, first, included=True)
        return stage != "S3" or _is_up_to(row, batch, included=True)

    @cached_property
    def _by_seq(self) -> dict[int, Row]:
        return {row.seq: row for row in self.rows}


def _is_up_to(row: Row, moment: Moment | None, *, included: bool) -> bool:
    if moment is None:
        return True
    return row.seq <= moment.seq if included else row.seq < moment.seq - 1


def write_notebook(material: Material, budget: int = DEFAULT_TOKENS) -> Notebook:
    """Write the notebook of a run within ``budget`` tokens (as ``quoting.tokens`` counts them, which is high)."""
    evidence = material.evidence
    rows = rows_of(material.events, evidence, material.names)
    top = "\n".join([*_facts(material), "", "Stages", *_stages(material), "", "Events"])
    plan = visible(masked(plan_text(material.plan_folder) or "", material.names))
    left = budget - tokens(top)
    shown = _condensed(rows, int(left * _HEADS_SHARE), evidence)
    left -= sum(tokens(row.head) + 1 for row in shown)
    plan_row = _last(rows, lambda row: "plan" in row.kinds)
    plan_quote = (
        fitted(plan, max(0, min(int(budget * _PLAN_SHARE), left - _LABEL_TOKENS))) if plan_row else ""
    )
    left -= tokens(plan_quote) + _LABEL_TOKENS
    lines = [top]
    for row, quotes in zip(shown, _shared_out(shown, left), strict=True):
        lines += [row.head, *quotes]
        if plan_row is not None and row.seq == plan_row.seq and plan_quote:
            lines += [f"  plan.md as it was at the end ({len(plan)} characters):", plan_quote]
    return Notebook("\n".join(lines), rows, evidence)


def _last(rows: Sequence[Row], wanted: Callable[[Row], bool]) -> Row | None:
    return next((row for row in reversed(rows) if wanted(row)), None)


# --- room --------------------------------------------------------------------------------------------


def _shared_out(rows: Sequence[Row], budget: int) -> Iterator[list[str]]:
    """The quotes of every row, each within its share of the budget."""
    shares = iter(_shares([quote for row in rows for quote in row.quotes], budget))
    for row in rows:
        shown = []
        for quote in row.quotes:
            text = fitted(quote.text, next(shares) - _LABEL_TOKENS, quote.head_share)
            if text:
                shown += [f"  {quote.label}:", text]
        yield shown


def _shares(quotes: Sequence[Quote], budget: int) -> list[int]:
    """Tokens for each quote, by weight; what needs less than its share leaves the rest to the others. Where a
    share would be too small to be worth reading, the lightest quotes give up theirs, then the later ones.
    """
    wants = [tokens(quote.text) * 1.3 + 2 * _LABEL_TOKENS for quote in quotes]
    weights = [quote.weight for quote in quotes]
    kept = list(range(len(quotes)))
    level = 0.0
    while kept:
        level = _water_level(sorted((wants[i] / weights[i], weights[i]) for i in kept), max(0, budget))
        starved = [i for i in kept if level * weights[i] < min(wants[i], _LEAST_TOKENS)]
        if not starved:
            break
        lightest = min(weights[i] for i in starved)
        light = [i for i in starved if weights[i] == lightest]
        gone = set(light if lightest < max(weights[i] for i in kept) else light[len(light) // 2 :])
        kept = [i for i in kept if i not in gone]
    shares = [0] * len(quotes)
    for i in kept:
        shares[i] = int(min(wants[i], level * weights[i]))
    return shares


def _water_level(vessels: Sequence[tuple[float, float]], water: float) -> float:
    """How high water stands in vessels of (height, width), lowest first, when they are filled from one jug."""
    width = sum(own for _, own in vessels)
    for height, own in vessels:
        if height * width > water:
            return water / width
        water -= height * own
        width -= own
    return vessels[-1][0]


def _condensed(rows: Sequence[Row], budget: int, evidence: Evidence) -> Sequence[Row]:
    """The rows, neighbours put together until the heads fit: first what nothing came of, then failures too, and in
    the end all but the turning points of the run.
    """
    turning = (
        evidence.plan_written,
        evidence.inputs_shown,
        evidence.weights_read,
        evidence.first_case,
        evidence.inspection,
        evidence.batch,
    )
    pinned = {moment.seq for moment in turning if moment}
    mergeable: tuple[Callable[[Row], bool], ...] = (
        lambda row: not row.key and not row.failed,
        lambda row: not row.key,
        lambda row: row.seq not in pinned,
    )
    for may_merge in mergeable:
        if sum(tokens(row.head) + 1 for row in rows) <= budget:
            break
        rows = [
            merged
            for together, group in groupby(rows, may_merge)
            for merged in _merged(list(group), together)
        ]
    return rows


def _merged(group: list[Row], together: bool) -> list[Row]:
    if not together or len(group) == 1:
        return group
    first, last = group[0], group[-1]
    failed = [f"E{row.seq}" for row in group if row.failed]
    head = f"E{first.seq} to E{last.seq}, turns {first.turn} to {last.turn}: {len(group)} events"
    if failed:
        listed = ", ".join(failed[:10]) + (" ..." if len(failed) > 10 else "")
        head += f"; {len(failed)} failed commands: {listed}"
    return [Row(first.seq, first.turn, head, failed=bool(failed))]


# --- facts -------------------------------------------------------------------------------------------


def _facts(material: Material) -> Iterator[str]:
    evidence = material.evidence
    yield "Facts, as the host saw them"
    yield f"- {evidence.cases} cases; each needs {', '.join(evidence.expected_files)}"
    plan, picture = evidence.plan, evidence.picture
    yield f"- plan.md: {plan.problem or f'{plan.chars} characters'}{_at(', first written', evidence.plan_written)}"
    yield f"- plan.png: {picture.problem or f'{picture.width} x {picture.height} pixels'}"
    failed = len(evidence.failures)
    unfixed = sum(attempt.fixed_by is None for attempt in evidence.failures)
    yield f"- {len(evidence.attempts)} commands, {failed} failed, {unfixed} of them never put right"
    yield f"- first complete case: {_place(evidence.first_case)}"
    yield f"- batch (more than {evidence.pilot_size} cases complete): {_place(evidence.batch)}"
    yield f"- pilot before the batch, in an earlier turn: {_place(evidence.pilot)}"
    yield f"- pilot's output read back and something printed: {_place(evidence.inspection)}"
    yield f"- shape of a public input printed before any case: {_place(evidence.inputs_shown)}"
    weights = ", ".join(
        f"{name(file.path)} ({file.size} bytes, E{file.at.seq})" for file in evidence.weights[:5]
    )
    yield f"- files that could be weights: {weights or 'none'}; first read: {_place(evidence.weights_read)}"
    yield f"- packages that appeared: {', '.join(map(name, evidence.packages[:20])) or 'none'}"
    yield f"- GPU in the sandbox: {'yes' if evidence.gpu else 'none'}"
    if material.collected is not None:
        collected = material.collected
        refused = ", ".join(f"{name(one.path)} {one.code}" for one in collected.problems[:5])
        yield f"- collected files: {len(collected.files)}; not collected: {len(collected.problems)} {refused}"
    yield f"- {evidence.complete_cases} cases complete at the end; the run ended: {evidence.end or 'not at all'}"


def _place(moment: Moment | None) -> str:
    return f"E{moment.seq} (turn {moment.turn})" if moment else "never seen"


def _at(words: str, moment: Moment | None) -> str:
    return f"{words} at {_place(moment)}" if moment else ""


def _stages(material: Material) -> Iterator[str]:
    for span in stage_spans(material.events, material.evidence):
        yield (
            f"- {span.stage}: {span.turns} turns, {span.commands} commands, {span.failed_commands} failed, "
            f"{span.seconds:.0f} s"
        )
