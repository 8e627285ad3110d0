"""The plans that the agent brings along, one YAML a track or, in ``tasks/``, a few tasks; the layout of ``plan.md``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.resources import files

from pydantic import Field, PositiveInt

from tasks.schema import Strict, Task, Tier, Track

METHOD = "{method}"


class Candidate(Strict):
    """A method that the plan's script offers under the same key."""

    name: str
    idea: str
    pro: str
    con: str


class Measure(Strict):
    """How the candidates are compared on a few public cases without references; higher is better."""

    name: str
    how: str
    cases: PositiveInt = 3


class TrackPlan(Strict):
    """What the agent means to do on one track, or on the tasks it names, in words."""

    tasks: tuple[str, ...] = Field(default=(), description="Tasks that it is for; the whole track by default")
    script: str = Field(default="", description="Name of the method's script; that of the track by default")
    why: str
    default: str
    fallback: str
    candidates: dict[str, Candidate]
    measure: Measure
    pipeline: tuple[str, ...]
    checks: tuple[str, ...]
    risks: tuple[str, ...]
    helpers: tuple[str, ...] = Field(default=(), description="Scripts that the track's script imports")

    def boxes(self, method: str) -> tuple[str, ...]:
        """The pipeline with the method's name in its place."""
        return tuple(self.candidates[method].name if step == METHOD else step for step in self.pipeline)

    @property
    def method_box(self) -> int:
        return self.pipeline.index(METHOD)


class Measured(Strict):
    """One row of the comparison as the sandbox printed it."""

    quality: float
    seconds: float


def load_plan(track: Track) -> TrackPlan:
    """The plan of a track; there is one for every track."""
    import yaml

    path = files(__package__).joinpath("plans", f"{track.value}.yaml")
    return TrackPlan.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))


def plan_for(task: Task) -> TrackPlan:
    """The plan that names the task, or else the plan of its track."""
    import yaml

    for path in files(__package__).joinpath("plans", "tasks").iterdir():
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        if task.id in content["tasks"]:
            return TrackPlan.model_validate(content)
    return load_plan(task.track)


def read_comparison(output: str) -> dict[str, Measured]:
    """The table that ``common.compare`` prints as its last line; empty where there is none."""
    found = re.findall(r"^COMPARISON (\{.*\})$", output, re.MULTILINE)
    return (
        {name: Measured.model_validate(row) for name, row in json.loads(found[-1]).items()} if found else {}
    )


def choose(plan: TrackPlan, table: Mapping[str, Measured]) -> tuple[str, str]:
    """The candidate of best measured quality and the sentence that says why; the default if nothing was measured."""
    if not table:
        return (
            plan.default,
            f"{plan.candidates[plan.default].name}, by design; the comparison gave no numbers.",
        )
    best = max(table, key=lambda name: (table[name].quality, -table[name].seconds))
    name, row = plan.candidates[best].name, table[best]
    others = [plan.candidates[key].name for key in table if key != best]
    return best, (
        f"{name}, the highest {plan.measure.name} of the three ({row.quality:.3f}) at {row.seconds:.2f} s a case. "
        f"Rejected: {' and '.join(others)}."
    )


def write_plan(
    task: Task,
    tier: Tier,
    plan: TrackPlan,
    method: str,
    cases: int,
    table: Mapping[str, Measured],
    decision: str,
) -> str:
    """The text of ``plan.md``."""
    from jinja2 import Environment, StrictUndefined

    layout = files(__package__).joinpath("plans", "layout.txt").read_text(encoding="utf-8")
    environment = Environment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
    return environment.from_string(layout).render(
        task=task,
        tier=tier.value,
        plan=plan,
        method=method,
        pipeline=plan.boxes(method),
        fallback=plan.candidates[plan.fallback].name,
        cases=cases,
        table=table,
        decision=decision,
    )
