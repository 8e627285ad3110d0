"""The top of a run's page: which run it is, what it reached, and what else is to be known at first sight."""

from __future__ import annotations

from markupsafe import Markup

from evaluator.trace import EndReason
from hf_datasets.records import RunRecord
from space.markup import chip, dollars, duration, el, join, note, percent
from space.rundetail.parts import task_of
from space.site import Site
from tasks.names import Tier
from tasks.scoring import AGENTIC_SHARE, STAGE_NAMES, STAGE_WEIGHTS, TASK_SHARE


def head(record: RunRecord) -> Markup:
    """Title, badges, and the scores as tiles."""
    task = task_of(record)
    title = task.title if task else record.task
    tasks = el("a", record.task, href=Site.link("tasks", task=record.task))
    return el(
        "div",
        el("h2", title),
        el("p", tasks, f" · {record.tier.value} tier · agent ", el("strong", record.agent),
           f" ({record.model or 'no model'}) · repeat {record.repeat}, attempt {record.attempt}",
           class_="amb-lead"),
        el("p", badges(record), class_="amb-badges"),
        _warnings(record),
        el("div", _tiles(record), class_="amb-tiles"),
        class_="amb-run-head",
    )  # fmt: skip


def badges(record: RunRecord) -> Markup:
    """Words that say under which circumstances the numbers were made."""
    end = "good" if record.end_reason is EndReason.SUBMITTED else "bad"
    judge = "unjudged" if record.judge is None else f"judge: {record.judge_model or record.judge}"
    words = [
        chip(f"release: {record.release.value}", title="Which data the run was made on"),
        chip(f"ended: {record.end_reason.value}", end, record.end_detail or None),
        chip(judge, "" if record.judge else "bad", "Who scored S1 to S3"),
        chip(f"network: {record.network}", title="What the agent's code could reach"),
        chip(record.hardware_class, title="Hardware class"),
        chip(f"sandbox: {record.sandbox}"),
        chip("experimental tier", "bad") if record.tier is Tier.PRO else None,
        *(chip(f"flag: {flag}", "bad", "A sign of contamination; evidence, never a verdict") for flag in record.flags),
    ]  # fmt: skip
    return join(words, " ")


def _warnings(record: RunRecord) -> list[Markup]:
    found = []
    if not record.end_reason.is_agents:
        found.append(
            "The provider or the machine ended this run: it counts as missing and is to be run again."
        )
    if record.flags:
        found.append(
            f"Signs of contamination: {', '.join(record.flags)}. They are evidence for a reader, never a verdict, "
            "and change no score."
        )
    if record.policy_warnings:
        found.append(f"The agent was warned of {record.policy_warnings} confirmed breaches of the rules.")
    if record.judge_same_family:
        found.append("The judge's model comes from the agent's own provider.")
    if record.release.value == "phantom":
        found.append(
            "Made on phantoms: small generated data that stand in for patients, no result of the benchmark."
        )
    return [note(text, "warning") for text in found]


def _tiles(record: RunRecord) -> list[Markup]:
    totals = [
        _tile("OVERALL", record.overall, f"{AGENTIC_SHARE:g} AGENTIC + {TASK_SHARE:g} TASK", "amb-main"),
        _tile("AGENTIC", record.agentic, "Weighted sum of the five stages"),
        _tile(
            "TASK", record.task_score, f"{record.metric}, set {record.metric_set or 'none'}; gate included"
        ),
    ]
    stages = [
        _tile(
            f"{stage} {name}",
            getattr(record, stage.lower()),
            f"{100 * STAGE_WEIGHTS[stage]:.0f} % of AGENTIC",
            "amb-small",
        )
        for stage, name in STAGE_NAMES.items()
    ]
    spent = [
        _fact("cost", dollars(record.cost_usd), record.price_source or "no price known"),
        _fact("turns", str(record.turns), f"{record.tokens_in + record.tokens_out:,} tokens"),
        _fact(
            "working time", duration(record.seconds_working), f"{duration(record.seconds_wall)} on the clock"
        ),
        _fact("cases", f"{record.n_scored}/{record.n_cases}", "scored / in the manifest"),
    ]
    return totals + stages + spent


def _tile(name: str, value: float | None, hint: str, class_: str = "") -> Markup:
    shown = 0.0 if value is None else value
    bar = el("span", class_="amb-bar-fill", style=f"width:{100 * shown:.1f}%", aria_hidden="true")
    missing = " amb-missing" if value is None else ""
    return el(
        "div", el("span", name, class_="amb-tile-name"), el("span", percent(value), class_="amb-tile-value"),
        el("span", bar, class_="amb-tile-bar"), class_=f"amb-tile {class_}{missing}".strip(), title=hint,
    )  # fmt: skip


def _fact(name: str, value: str, hint: str) -> Markup:
    return el(
        "div", el("span", name, class_="amb-tile-name"), el("span", value, class_="amb-tile-value"),
        el("span", hint, class_="amb-tile-hint"), class_="amb-tile amb-small amb-fact",
    )  # fmt: skip
