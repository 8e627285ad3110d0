"""About: method, scoring, every metric's definition, limits, citation and changelog."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradio as gr
from markupsafe import Markup

from space import about
from space.markup import el
from space.site import Site, state_of

PARTS = ("Method", "Scoring", "Metrics", "Limits", "Cite", "Changelog")
_SHOWN: dict[str, Callable[[], Markup]] = {
    "Method": about.method,
    "Scoring": about.how_scored,
    "Metrics": about.metrics,
    "Limits": about.limits_of_it,
    "Cite": about.citation,
    "Changelog": lambda: Markup(""),
}


def build(site: Site) -> None:
    gr.HTML(el("h1", "About", class_="amb-h1"), padding=False)
    part = gr.Radio(PARTS, value=PARTS[0], show_label=False, container=False, elem_classes="amb-tabs")
    body = gr.HTML(elem_id="about-body", padding=False)
    changes = gr.Markdown(visible=False)

    def show(name: str) -> list[Any]:
        listed = name == "Changelog"
        return [
            _SHOWN.get(name, about.method)(),
            gr.update(visible=listed, value=about.changelog() if listed else ""),
        ]

    def opened(request: gr.Request) -> list[Any]:
        name = state_of(request).get("part", PARTS[0])
        name = name if name in PARTS else PARTS[0]
        return [name, *show(name)]

    site.on_load(opened, [part, body, changes])
    part.input(show, part, [body, changes], show_progress="hidden", queue=False, api_visibility="private")
    site.remember({"part": part})
