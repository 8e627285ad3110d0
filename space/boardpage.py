"""What the pages over a board share: the choice of the board, the filters, and their place in the address."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import gradio as gr
from gradio.components import Component
from markupsafe import Markup

from space.board import Board, Filter
from space.boards import board_title
from space.markup import el, note
from space.published import LABEL
from space.site import Site, listed, state_of
from space.snapshot import Snapshot
from tasks.names import Tier, Track
from tasks.registry import task_ids

PUBLISHED = "published"
"""Key of the board that shows the paper's table."""
TIERS = (Tier.LITE.value, Tier.STANDARD.value)
Extras = Mapping[str, Component]


@dataclass(frozen=True)
class Asked:
    """What the reader wants to see. ``board`` is None for the published table."""

    snapshot: Snapshot
    board: Board | None
    wanted: Filter
    search: str
    extra: Mapping[str, Any]

    @property
    def state(self) -> dict[str, Any]:
        """The same as names and values of an address."""
        wanted = self.wanted
        return {
            "board": self.board.key if self.board else PUBLISHED,
            "track": wanted.tracks, "task": wanted.tasks, "tier": wanted.tiers, "status": wanted.statuses,
            "since": wanted.since, "until": wanted.until,
        }  # fmt: skip


@dataclass(frozen=True)
class Controls:
    """The controls of a board page, by their names in the address."""

    named: Mapping[str, Component]

    def asked(self, snapshot: Snapshot, values: Mapping[str, Any]) -> Asked:
        extra = {name: values[name] for name in values if name not in _SHARED}
        return Asked(
            snapshot, board_named(snapshot, values["board"]), filter_of(values), values["q"] or "", extra
        )


_SHARED = ("board", "track", "task", "tier", "status", "since", "until", "q")
_LISTS = ("track", "task", "tier", "status", "cols")


def build_board_page(
    site: Site,
    heading: str,
    lead: str,
    content: Callable[[Asked], Markup],
    extras: Callable[[], Extras] = dict,
    *,
    has_published: bool = True,
) -> None:
    """A heading, the controls, and ``content`` for what is asked, made anew whenever a control changes.

    Where the published table has no figures for the page (``has_published``), the demonstration opens with its own.
    """
    gr.HTML(el("h1", heading, class_="amb-h1") + el("p", lead, class_="amb-lead"))
    controls = Controls({**_shared_controls(), **extras()})
    shown = gr.HTML(elem_id="board-content")

    def show(*values: Any) -> str:
        return _shown(site, controls, dict(zip(controls.named, values, strict=True)), content)

    def opened(request: gr.Request) -> list[Any]:
        """The controls as the address says, and what they ask for, in one answer."""
        snapshot, state = site.data(), state_of(request)
        values = {name: _initial(name, control, state) for name, control in controls.named.items()}
        if snapshot.is_demo and not has_published and not values["board"]:
            values["board"] = next(iter(snapshot.boards), PUBLISHED)
        values["board"] = _known_board(snapshot, values["board"])
        updates = [_update(name, values[name], snapshot, state) for name in controls.named]
        return [*updates, _shown(site, controls, values, content)]

    inputs = list(controls.named.values())
    site.on_load(opened, [*inputs, shown])
    for name, control in controls.named.items():
        # A text may also be pasted or cleared, which is no input to Gradio.
        changed = control.change if isinstance(control, gr.Textbox) else control.input
        changed(show, inputs=inputs, outputs=[shown], show_progress="hidden", trigger_mode="always_last",
                api_visibility="private")  # fmt: skip
        site.remember({name: control})


def _shared_controls() -> dict[str, Component]:
    named: dict[str, Component] = {}
    with gr.Row(elem_classes="amb-controls"):
        named["board"] = gr.Dropdown(
            [], label="Board (runs of different ones are never averaged)", scale=5, min_width=300
        )
        named["track"] = gr.Dropdown([track.value for track in Track], label="Tracks (none: all)", multiselect=True,
                                     min_width=150, scale=3)  # fmt: skip
        named["tier"] = gr.CheckboxGroup(list(TIERS), label="Tiers (none: both)", min_width=190, scale=2)
        named["q"] = gr.Textbox(label="Search agent or model", min_width=150, scale=2)
    with gr.Accordion("More filters", open=False), gr.Row(elem_classes="amb-controls"):
        named["task"] = gr.Dropdown(
            task_ids(), label="Tasks (none: all)", multiselect=True, scale=3, min_width=220
        )
        named["status"] = gr.Dropdown([], label="Verified (none: all)", multiselect=True, min_width=160)
        named["since"] = gr.Textbox(label="Finished from", placeholder="2026-06-01", min_width=110)
        named["until"] = gr.Textbox(label="until", placeholder="2026-12-31", min_width=110)
    return named


def _shown(
    site: Site, controls: Controls, values: Mapping[str, Any], content: Callable[[Asked], Markup]
) -> str:
    asked = controls.asked(site.data(), values)
    if asked.board is not None and asked.board.chosen(asked.wanted).empty:
        return str(note("No run of this board passes these filters; take one away.", "warning"))
    return str(content(asked))


def _initial(name: str, control: Component, state: Mapping[str, str]) -> Any:
    if name not in state:
        return control.value
    return listed(state[name]) if name in _LISTS else state[name]


def _update(name: str, value: Any, snapshot: Snapshot, state: Mapping[str, str]) -> Any:
    if name == "board":
        return gr.update(choices=board_choices(snapshot), value=value)
    if name == "status":
        return gr.update(choices=sorted(map(str, snapshot.runs["status"].unique())), value=value)
    return gr.update(value=value) if name in state else gr.skip()


def board_choices(snapshot: Snapshot) -> list[tuple[str, str]]:
    """Title and key of every board, the published table last."""
    named = [(f"{board_title(key)} ({len(board.runs):,})", key) for key, board in snapshot.boards.items()]
    return [*named, (LABEL, PUBLISHED)]


def board_named(snapshot: Snapshot, key: str | None) -> Board | None:
    """The board of this key; None for the published table."""
    return snapshot.boards.get(_known_board(snapshot, key))


def _known_board(snapshot: Snapshot, key: str | None) -> str:
    if key in snapshot.boards or key == PUBLISHED:
        return str(key)
    return PUBLISHED if snapshot.is_demo else next(iter(snapshot.boards), PUBLISHED)


def filter_of(values: Mapping[str, Any]) -> Filter:
    """The filter that controls or an address ask for."""

    def chosen(name: str) -> tuple[str, ...]:
        found: Sequence[str] = values.get(name) or ()
        return tuple(sorted(found))

    return Filter(
        tracks=chosen("track"),
        tasks=chosen("task"),
        tiers=() if set(chosen("tier")) == set(TIERS) else chosen("tier"),
        statuses=chosen("status"),
        since=_day(values.get("since")),
        until=_day(values.get("until")),
    )


def _day(text: Any) -> str:
    """A day such as 2026-05-31; anything else, such as one that is still being typed, is not a filter."""
    try:
        return date.fromisoformat(str(text or "").strip()).isoformat()
    except ValueError:
        return ""
