"""The brief: everything an agent is told about a run, rendered from the task's own data."""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError

from tasks import canary, scoring
from tasks.contract import output_example, output_schema
from tasks.names import Network
from tasks.registry import TASKS_ROOT, task_folder
from tasks.schema import OUTPUT_ROOT, Limits, Release, Strict, Task, Tier

TEMPLATES = TASKS_ROOT / "templates"
EXAMPLE_CASE = "CASE"

_LEFTOVER = re.compile(r"\{\{|\{%|\$\{\w+\}|\b(?:TODO|FIXME|TBD|XXX)\b|<[A-Za-z][A-Za-z0-9_ -]*>")


class BriefError(Exception):
    """A brief cannot be rendered: a name is missing or a placeholder was left in; one line."""


class Brief(Strict):
    """What the agent reads. ``sha256`` covers both texts, so that a record can say which words were sent."""

    task: str
    tier: Tier
    system: str
    text: str
    sha256: str


def render(
    task: Task,
    tier: Tier,
    *,
    release: Release,
    n_cases: int,
    limits: Limits | None = None,
    network: Network = "allowlist",
) -> Brief:
    """Render the brief of one cell.

    Parameters
    ----------
    task, tier
        What is asked and how much is disclosed. ``Tier.PRO`` is experimental and names no method.
    release
        The data the run is made on.
    n_cases
        Number of cases in the manifest, at least 1.
    limits
        Limits of this run; those of the task when None.
    network
        What the agent's sandbox reaches.

    Raises
    ------
    BriefError
        A template names something that does not exist, or a placeholder was left in the text.
    """
    environment = _environment(TEMPLATES, TASKS_ROOT)
    context = _context(task, tier, release, n_cases, limits or task.limits, network)
    system = fill(environment, "system.md.j2", context)
    text = fill(environment, "brief.md.j2", context)
    digest = hashlib.sha256(f"{system}\0{text}".encode()).hexdigest()
    return Brief(task=task.id, tier=tier, system=system, text=text, sha256=digest)


def fill(environment: Environment, template: str, context: dict[str, Any]) -> str:
    """Render one template and refuse a result that still holds a placeholder."""
    try:
        text = environment.get_template(template).render(context)
    except TemplateError as error:
        raise BriefError(f"{template}: {type(error).__name__}: {error}") from None
    leftover = _LEFTOVER.search(text)
    if leftover:
        line = text.count("\n", 0, leftover.start()) + 1
        raise BriefError(f"{template}: placeholder '{leftover[0]}' left in line {line} of the rendered text")
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


@cache
def _environment(*folders: Path) -> Environment:
    """Jinja over the given folders: a missing name is an error, text is never escaped."""
    return Environment(
        loader=FileSystemLoader(folders),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _context(
    task: Task, tier: Tier, release: Release, n_cases: int, limits: Limits, network: str
) -> dict[str, Any]:
    return {
        "task": task,
        "tier": tier,
        "release": release,
        "n_cases": n_cases,
        "limits": limits,
        "network": network,
        "canary": canary.NOTICE,
        "output_root": OUTPUT_ROOT,
        "schema": json.dumps(output_schema(task), indent=2, ensure_ascii=False),
        "example": output_example(task, EXAMPLE_CASE),
        "requirements": (task_folder(task.id) / "requirements.txt").read_text(encoding="utf-8").strip(),
        "scoring": scoring,
        "s1_items": scoring.s1_items(task.track),
        "s3_levels": scoring.s3_levels(task.track),
    }
