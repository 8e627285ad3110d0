"""What a ``SWEEP.yaml`` may say, and the cells that it names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, NonNegativeInt, PositiveInt, ValidationError

from hf_datasets.records import Name
from runner.cell import Cell
from runner.errors import UsageProblem, unknown
from runner.sandbox import BackendName
from tasks.names import Network, Release, Tier
from tasks.registry import NOT_YAML, all_tasks, load_task, task_ids
from tasks.schema import Strict

Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Repeats = Annotated[int, Field(ge=1, le=10_000)]

DEFAULT = "default"
EVERYTHING = ("paper", "all")


class Cap(Strict):
    """What may be spent, over all attempts. None: no bound."""

    usd: Amount | None = None
    tokens: PositiveInt | None = None


class Budget(Cap):
    """Of the sweep as a whole, and of single agents; the judging of a run counts as its agent's."""

    agents: dict[Name, Cap] = Field(default={})


class ProviderRates(Strict):
    """What a provider allows. ``concurrency`` is the most requests at a time; fewer while it says 429."""

    requests_per_minute: Amount | None = None
    tokens_per_minute: Amount | None = None
    concurrency: PositiveInt = 256


class SweepForm(Strict):
    """``SWEEP.yaml``.

    ``repeats`` is ``published`` (what each task says), one number, or numbers by task with ``default`` for the others.
    ``providers`` are named by the host of their ``base_url``. Relative files count from the folder of the YAML file.
    """

    name: Name
    agents: Annotated[tuple[Name, ...], Field(min_length=1)]
    tasks: Literal["paper", "all"] | Annotated[tuple[str, ...], Field(min_length=1)] = "paper"
    tiers: Annotated[tuple[Tier, ...], Field(min_length=1)] = (Tier.LITE, Tier.STANDARD)
    repeats: Literal["published"] | Repeats | dict[str, Repeats] = "published"
    release: Release = Release.PHANTOM
    network: Network = "allowlist"
    watch_training: bool = False
    sandbox: BackendName = "auto"
    limits: dict[str, float | int] = Field(default={})
    judge: str = "rules"
    agents_file: Path | None = None
    judges_file: Path | None = None
    gpus: Annotated[int, Field(ge=0, le=16)] = 0
    retries: NonNegativeInt = 3
    retry_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 10.0
    budget: Budget = Budget()
    providers: dict[str, ProviderRates] = Field(default={})

    def rates_of(self, provider: str) -> ProviderRates:
        """What a provider allows; one that is not named has no bound but what its 429s say."""
        return self.providers.get(provider, ProviderRates())


class Block(Strict):
    """The repeats of one agent on one task in one tier."""

    agent: Name
    task: Name
    tier: Tier
    repeats: PositiveInt


def read_form(path: Path) -> SweepForm:
    """A ``SWEEP.yaml``, its files anchored in its own folder.

    Raises
    ------
    UsageProblem
        It is absent, no YAML, breaks the form, or names a task that does not exist.
    """
    try:
        form = SweepForm.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UsageProblem(f"{path}: expected a sweep file; {error.strerror} (see docs/sweeps.md)") from None
    except ValidationError as error:
        found = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'the file'}: {one['msg']}" for one in error.errors()[:4]
        )
        raise UsageProblem(f"{path} is not a sweep file: {found}") from None
    except NOT_YAML as error:
        raise UsageProblem(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    _check(path, form)
    files = {
        name: (path.parent / given).resolve()
        for name in ("agents_file", "judges_file")
        if (given := getattr(form, name)) is not None
    }
    return form.model_copy(update=files)


def _check(path: Path, form: SweepForm) -> None:
    known = task_ids()
    mapped = set(form.repeats) - {DEFAULT} if isinstance(form.repeats, dict) else set()
    for task in [*chosen_tasks(form), *sorted(mapped)]:
        if task not in known:
            raise unknown("task", task, known)
    for name in ("agents", "tiers", "tasks"):
        values = getattr(form, name)
        if not isinstance(values, str) and len(set(values)) != len(values):
            raise UsageProblem(f"{path}: {name} names something twice")
    if strangers := sorted(form.budget.agents.keys() - set(form.agents)):
        raise UsageProblem(f"{path}: budget.agents.{strangers[0]} is no agent of this sweep")


def chosen_tasks(form: SweepForm) -> list[str]:
    """Ids of the sweep's tasks, in order."""
    if not isinstance(form.tasks, str):
        return list(form.tasks)
    return [task.id for task in all_tasks() if form.tasks == "all" or task.in_paper]


def blocks_of(form: SweepForm) -> tuple[Block, ...]:
    """Agents x tasks x tiers, each with its repeats."""
    return tuple(
        Block(agent=agent, task=task, tier=tier, repeats=_repeats(form, task))
        for task in chosen_tasks(form)
        for tier in form.tiers
        for agent in form.agents
    )


def _repeats(form: SweepForm, task: str) -> int:
    published = load_task(task).repeats
    if isinstance(form.repeats, int):
        return form.repeats
    if isinstance(form.repeats, dict):
        return form.repeats.get(task, form.repeats.get(DEFAULT, published))
    return published


def cells_of(blocks: tuple[Block, ...], release: Release) -> Iterator[Cell]:
    """Every planned cell; all first repeats come before all second ones, so that a part covers everything."""
    for repeat in range(max(block.repeats for block in blocks)):
        for block in blocks:
            if repeat < block.repeats:
                yield Cell(block.task, block.tier, release, block.agent, repeat)
