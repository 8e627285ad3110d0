"""Tasks: the catalogue, and of one task its standing, contract, licence and the briefs of both tiers."""

from __future__ import annotations

from typing import Any

import gradio as gr
from markupsafe import Markup

from space.markup import el, note
from space.site import Site, listed, state_of
from space.taskdetail.catalogue import Wanted, catalogue
from space.taskdetail.contract import contract, head
from space.taskdetail.standing import standing
from tasks.brief import BriefError, render
from tasks.registry import TaskError, all_tasks, load_task
from tasks.schema import Redistribution, Release, Task, Tier, Track

PARTS = ("Standing", "Contract", "Lite brief", "Standard brief")
_TIERS = {"Lite brief": Tier.LITE, "Standard brief": Tier.STANDARD}
_ALL = "all tasks"


def build(site: Site) -> None:
    task = gr.Dropdown([], label="Task", filterable=True, allow_custom_value=True, elem_id="task-choice")
    with gr.Row(elem_classes="amb-controls") as filters:
        words = gr.Textbox(label="Search", placeholder="title, data set, modality", scale=2)
        tracks = gr.CheckboxGroup([track.value for track in Track], label="Track", scale=4)
        leaves = gr.CheckboxGroup(
            [one.value for one in Redistribution], label="May leave the machine", scale=2
        )
        paper = gr.Checkbox(label="In the paper", container=True)
    top = gr.HTML(elem_id="task-head")
    part = gr.Radio(
        PARTS, value=PARTS[0], show_label=False, container=False, visible=False, elem_classes="amb-tabs"
    )
    body = gr.HTML(elem_id="task-body", padding=False)

    controls = {
        "task": task,
        "words": words,
        "tracks": tracks,
        "leaves": leaves,
        "paper": paper,
        "part": part,
    }
    shown = [filters, part, top, body]

    def show(
        name: str | None, words: str, tracks: list[str], leaves: list[str], paper: bool, part: str
    ) -> list[Any]:
        try:
            chosen = load_task(name) if name and name != _ALL else None
        except TaskError as error:
            return [gr.update(visible=True), gr.update(visible=False), note(str(error)[:300], "bad"), ""]
        if chosen is None:
            runs = site.data().runs
            counts = runs["task"].value_counts().to_dict() if len(runs) else {}
            listing = catalogue(Wanted(words or "", tracks, leaves, bool(paper)), counts)
            return [gr.update(visible=True), gr.update(visible=False), "", listing]
        wanted = part if part in PARTS else PARTS[0]
        return [gr.update(visible=False), gr.update(visible=True), _top(chosen), _part(site, chosen, wanted)]

    def opened(request: gr.Request) -> list[Any]:
        state = state_of(request)
        part = state.get("part", PARTS[0])
        values: list[Any] = [
            state.get("task", _ALL),
            state.get("words", ""),
            [name for name in listed(state.get("tracks")) if name in {track.value for track in Track}],
            [name for name in listed(state.get("leaves")) if name in {one.value for one in Redistribution}],
            state.get("paper") == "true",
            part if part in PARTS else PARTS[0],
        ]
        choices = [(_ALL, _ALL), *((f"{one.title} ({one.id})", one.id) for one in all_tasks())]
        return [gr.update(choices=choices, value=values[0]), *values[1:], *show(*values)]

    quiet: dict[str, Any] = {"show_progress": "hidden", "queue": False, "api_visibility": "private"}
    inputs = list(controls.values())
    site.on_load(opened, [*inputs, *shown])
    for control in inputs:
        # A text box tells of every change but not reliably of typing; the others tell which changes are the reader's.
        changed = control.change if control is words else control.input
        changed(show, inputs, shown, trigger_mode="always_last", **quiet)
    site.remember(controls)


def _top(task: Task) -> Markup:
    back = el("p", el("a", "‹ all tasks", href=Site.link("tasks")))
    return el("div", back, head(task))


def _part(site: Site, task: Task, part: str) -> Markup:
    if part == "Contract":
        return contract(task)
    if part in _TIERS:
        return _brief(task, _TIERS[part])
    return standing(task, site.data().runs)


def _brief(task: Task, tier: Tier) -> Markup:
    """The words an agent gets; the number of cases is that of the published runs, or an example."""
    cases = task.cases or 20
    try:
        brief = render(task, tier, release=Release.LITE, n_cases=cases)
    except BriefError as error:
        return note(f"The brief cannot be rendered: {error}", "bad")
    said = f"As an agent reads it on the Lite release, here with {cases} cases and no network. SHA-256 {brief.sha256}."
    return el(
        "div",
        el("p", said, class_="amb-hint"),
        el("h3", "System"),
        el("pre", brief.system, class_="amb-plan", tabindex="0"),
        el("h3", "Brief"),
        el("pre", brief.text, class_="amb-plan amb-long", tabindex="0"),
    )
