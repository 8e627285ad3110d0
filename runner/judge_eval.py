"""Measure judges on the calibration set: how often they are right, whether they waver, whether words win points."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from evaluator.judge.calibration import Sample, injection_samples, samples
from evaluator.judge.calibration.measure import Figures, Judgements, alpha_between, figures
from evaluator.judge.judgement import Judgement
from evaluator.rubric import load_rubric
from runner.judges import Judge


@dataclass(frozen=True)
class Measured:
    """Figures of one judge, and what it cost to ask it."""

    name: str
    model: str | None
    figures: Figures
    judgements: Judgements
    tokens: int
    cost_usd: float | None

    def as_dict(self) -> dict[str, Any]:
        own = self.figures
        return {
            "judge": self.name,
            "model": self.model,
            "accuracy": own.accuracy,
            "program_accuracy": own.program_accuracy,
            **{key: value for key, value in asdict(own).items() if key != "items"},
            "items": [{**asdict(item), "total": item.total} for item in own.items],
            "tokens": self.tokens,
            "cost_usd": self.cost_usd,
        }


def measure(judges: Mapping[str, Judge], repeats: int = 2, jobs: int = 4) -> list[Measured]:
    """Let every judge judge the whole set ``repeats`` times; attempts at points and their twins once."""
    with tempfile.TemporaryDirectory(prefix="automedbench-calibration-") as place:
        runs = list(samples(Path(place) / "runs"))
        attempts = list(injection_samples(Path(place) / "attempts"))
        return [_measure(name, judge, runs, attempts, repeats, jobs) for name, judge in judges.items()]


def _measure(
    name: str, judge: Judge, runs: Sequence[Sample], attempts: Sequence[Sample], repeats: int, jobs: int
) -> Measured:
    wanted = [*list(runs) * repeats, *attempts]
    with ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="judge") as pool:
        done = list(pool.map(lambda sample: _judge(judge, sample), wanted))
    judgements: dict[str, list[Judgement]] = {}
    for sample, judgement in zip(wanted, done, strict=True):
        judgements.setdefault(sample.name, []).append(judgement)
    panels = [judgement.panel for judgement in done if judgement.panel]
    costs = [panel.cost_usd for panel in panels if panel.cost_usd is not None]
    return Measured(
        name=name,
        model=judge.model,
        figures=figures(runs, attempts, judgements),
        judgements=judgements,
        tokens=sum(panel.tokens_in + panel.tokens_out for panel in panels),
        cost_usd=sum(costs) if costs else None,
    )


def _judge(judge: Judge, sample: Sample) -> Judgement:
    return judge.judge(sample.material, load_rubric(sample.track), sample.tier)


def page(measured: Sequence[Measured]) -> str:
    """All figures as Markdown; the same for the same judgements."""
    lines = [line for one in measured for line in [*_summary(one), "", *_table(one), ""]]
    for one, other in pairwise(measured):
        alpha = alpha_between(one.judgements, other.judgements)
        lines.append(f"Alpha between `{one.name}` and `{other.name}`: {_number(alpha)}")
    return "\n".join(lines).rstrip() + "\n"


def _summary(one: Measured) -> Iterator[str]:
    own = one.figures
    model = f" ({one.model})" if one.model else ""
    yield f"Judge `{one.name}`{model}:"
    yield ""
    yield f"- items right: {_percent(own.accuracy)} of {sum(item.total for item in own.items)}"
    yield f"- program items right: {_percent(own.program_accuracy)}"
    yield f"- items wrongly left out or wrongly asked: {own.wrongly_applied}"
    yield f"- values that changed over {own.repeats} repeats: {_percent(own.flip_rate)}"
    won = ", ".join(f"{name} ({points:g})" for name, points in sorted(own.won.items())) or "none"
    yield f"- points won by {own.attempts} attempts to talk the judge into them: {sum(own.won.values()):g} ({won})"
    if one.tokens:
        cost = "no price known" if one.cost_usd is None else f"{one.cost_usd:.2f} USD"
        yield f"- asked for {one.tokens} tokens, {cost}"


def _table(one: Measured) -> Iterator[str]:
    yield "| item | decided by | runs | right | too high | too low | unscored |"
    yield "|---|---|---|---|---|---|---|"
    for item in one.figures.items:
        cells = (item.total, item.right, item.high, item.low, item.unscored)
        yield f"| `{item.item}` | {item.decided_by} | {' | '.join(map(str, cells))} |"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _number(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.3f}"
