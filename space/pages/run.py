"""Run: everything that is known of one run, section by section."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr
import pandas as pd
from markupsafe import Markup

from space.markup import el, join, note
from space.rundetail.cases import case_pages, cases
from space.rundetail.errors import errors
from space.rundetail.head import head
from space.rundetail.items import items
from space.rundetail.overview import overview
from space.rundetail.parts import why_missing
from space.rundetail.plan import plan
from space.rundetail.provenance import provenance
from space.runlist import first_run, run_choices, task_choices
from space.site import Site, listed, state_of
from space.snapshot import RunDetail
from space.traceindex import ROLES, TraceUnreadable, index_trace
from space.traceview import page_with, show_trace

SECTIONS = ("Overview", "Rubric items", "Cases", "Errors", "Plan", "Trace", "Provenance")
_PAGED = ("Cases", "Trace")


@dataclass(frozen=True)
class Asked:
    """What the reader wants to see of the run; ``page`` counts from 1, ``event`` is a number in the trace."""

    section: str = SECTIONS[0]
    words: str = ""
    roles: Sequence[str] = ()
    page: int = 1
    event: int | None = None


@dataclass(frozen=True)
class Answer:
    """The section's content, and the page that it shows of so many."""

    content: Markup
    page: int = 1
    pages: int = 1


def build(site: Site) -> None:
    with gr.Row(elem_classes="amb-controls"):
        task = gr.Dropdown(label="Task", choices=[], filterable=True, allow_custom_value=True, min_width=280)
        run = gr.Dropdown(
            label="Run", choices=[], filterable=True, allow_custom_value=True, min_width=280, scale=2
        )
    top = gr.HTML(elem_id="run-head")
    section = gr.Radio(SECTIONS, value=SECTIONS[0], show_label=False, container=False, elem_id="run-sections",
                       elem_classes="amb-tabs")  # fmt: skip
    with gr.Row(visible=False, elem_classes="amb-controls") as search:
        words = gr.Textbox(label="Search the trace", placeholder="words; Enter to search", scale=2)
        roles = gr.CheckboxGroup(ROLES, label="Who speaks", info="None chosen: all")
    with gr.Row(visible=False, elem_classes="amb-pager") as pager:
        back = gr.Button("‹ Previous", size="sm", min_width=90)
        page = gr.Number(1, label="Page", precision=0, minimum=1, min_width=80)
        forward = gr.Button("Next ›", size="sm", min_width=90)
    body = gr.HTML(elem_id="run-body", padding=False)
    event = gr.Textbox(visible=False)

    asked = [section, words, roles, page, event]
    shown = [search, pager, page, body]

    def opened(request: gr.Request) -> list[Any]:
        state = state_of(request)
        runs = site.data().runs
        chosen = state.get("run") or first_run(runs, state.get("task"))
        detail = site.data().run(chosen) if chosen else None
        of_task = detail.record.task if detail else state.get("task")
        name = state.get("section", SECTIONS[0])
        wanted = Asked(
            name if name in SECTIONS else SECTIONS[0],
            state.get("words", ""),
            [role for role in listed(state.get("roles")) if role in ROLES],
            _whole(state.get("page")) or 1,
            _whole(state.get("event")),
        )
        return [
            gr.update(choices=task_choices(runs), value=of_task),
            gr.update(choices=run_choices(runs, of_task), value=chosen or None),
            wanted.section,
            wanted.words,
            wanted.roles,
            "" if wanted.event is None else str(wanted.event),
            _top(detail, chosen, runs),
            *_shown(detail, wanted),
        ]

    def of_task(name: str) -> list[Any]:
        runs = site.data().runs
        chosen = first_run(runs, name)
        return [gr.update(choices=run_choices(runs, name), value=chosen), *of_run(chosen or "", SECTIONS[0])]

    def of_run(run_id: str, name: str) -> list[Any]:
        detail = site.data().run(run_id)
        return ["", "", _top(detail, run_id, site.data().runs), *_shown(detail, Asked(name))]

    def again(run_id: str, *values: Any) -> list[Any]:
        return _shown(site.data().run(run_id), _asked(*values))

    def from_start(run_id: str, name: str, words: str, roles: list[str]) -> list[Any]:
        return ["", *_shown(site.data().run(run_id), Asked(name, words, roles))]

    def step(by: int, run_id: str, name: str, words: str, roles: list[str], page: Any) -> list[Any]:
        return ["", *_shown(site.data().run(run_id), Asked(name, words, roles, (_whole(page) or 1) + by))]

    quiet: dict[str, Any] = {"show_progress": "hidden", "queue": False, "api_visibility": "private"}
    site.on_load(opened, [task, run, section, words, roles, event, top, *shown])
    task.input(of_task, task, [run, words, event, top, *shown], **quiet)
    run.input(of_run, [run, section], [words, event, top, *shown], **quiet)
    kept = [run, section, words, roles]
    section.input(from_start, kept, [event, *shown], **quiet)
    words.submit(from_start, kept, [event, *shown], **quiet)
    roles.input(from_start, kept, [event, *shown], **quiet)
    page.submit(again, [run, *asked], shown, **quiet)
    for button, by in ((back, -1), (forward, 1)):
        button.click(lambda *values, by=by: step(by, *values), [*kept, page], [event, *shown], **quiet)
    site.remember(
        {
            "task": task,
            "run": run,
            "section": section,
            "words": words,
            "roles": roles,
            "page": page,
            "event": event,
        }
    )


def _asked(section: str, words: str, roles: list[str], page: Any, event: str) -> Asked:
    return Asked(section, words, roles, _whole(page) or 1, _whole(event))


def _whole(text: Any) -> int | None:
    try:
        return max(0, min(10**9, int(text)))
    except (TypeError, ValueError):
        return None


def _top(run: RunDetail | None, run_id: str | None, runs: pd.DataFrame) -> str:
    if run is not None:
        return head(run.record)
    if run_id:
        return note(
            f"There is no run {run_id} in these results, or its record cannot be read any more.", "bad"
        )
    return note(
        "There are no runs in these results." if runs.empty else "This task has no run. Choose another one."
    )


def _shown(run: RunDetail | None, asked: Asked) -> list[Any]:
    """Updates of the search row, the pager, the page's number and the content."""
    answer = _answer(run, asked) if run else Answer(Markup(""))
    return [
        gr.update(visible=run is not None and asked.section == "Trace"),
        gr.update(visible=asked.section in _PAGED and answer.pages > 1),
        gr.update(value=answer.page, label=f"Page of {answer.pages}", maximum=answer.pages),
        answer.content,
    ]


def _answer(run: RunDetail, asked: Asked) -> Answer:
    match asked.section:
        case "Trace":
            return _trace(run, asked)
        case "Cases":
            pages = case_pages(run)
            page = min(max(1, asked.page), pages)
            return Answer(cases(run, page), page, pages)
        case "Rubric items":
            return Answer(items(run))
        case "Errors":
            return Answer(errors(run))
        case "Plan":
            return Answer(plan(run))
        case "Provenance":
            return Answer(provenance(run))
        case _:
            return Answer(overview(run))


def _trace(run: RunDetail, asked: Asked) -> Answer:
    path = run.trace
    if path is None:
        return Answer(note(why_missing(run, "trace"), "warning"))
    try:
        index = index_trace(path)
        found = index.find(asked.roles, asked.words)
        shown = page_with(found, asked.page, asked.event)
        cards = show_trace(index, shown, asked.words, asked.event)
    except TraceUnreadable as error:
        return Answer(note(f"The trace cannot be shown: {error}", "bad"))
    first = (shown.page - 1) * len(shown.places) + 1 if shown.places else 0
    counts = el("p", f"{len(found):,} of {len(index):,} events", f", from number {first:,}" if first > 1 else "",
                class_="amb-hint", role="status")  # fmt: skip
    return Answer(join([counts, cards]), shown.page, shown.pages)
