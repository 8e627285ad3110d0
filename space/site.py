"""What a page is given: the data, links to other pages, the look, and the address bar.

The address holds the state: every control of a page has a name in the query string, so that a link restores what its
sender saw.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import gradio as gr
from gradio.components import Component
from gradio.context import Context
from markupsafe import Markup, escape

from space.palette import PALETTE, Palette
from space.snapshot import Snapshot

HOME = "leaderboard"


class Site:
    """One Space over one source of results."""

    def __init__(self, data: Callable[[], Snapshot], staged: Path | None = None) -> None:
        """``staged``: folder of staged data (``<release>/<task>/...``) that cases may be drawn from."""
        self._data = data
        self.staged = staged
        self.theme: Palette = PALETTE

    def data(self) -> Snapshot:
        """The newest snapshot; cheap, because another thread reads the source."""
        return self._data()

    @staticmethod
    def link(view: str, **state: Any) -> Markup:
        """A relative address of a page in a state, as markup; what is None or empty is left out, lists are joined by
        commas.
        """
        texts = {name: _text(value) for name, value in state.items() if value not in (None, "", [], ())}
        query = urlencode(texts, safe=",")
        path = "./" if view == HOME else f"./{view}"
        return escape(f"{path}?{query}" if query else path)

    @staticmethod
    def file_url(run_id: str, name: str) -> str:
        """Where the browser gets a picture or a file of a run (``previews/<case>.webp``, ``plan.png``,
        ``record.json``, ``trace.jsonl`` ...).
        """
        return f"./files/{run_id}/{name}"

    @staticmethod
    def on_load(
        fn: Callable[..., Any], outputs: Sequence[Component], inputs: Sequence[Component] = ()
    ) -> None:
        """Call ``fn`` when the page is opened; its parameter annotated ``gr.Request`` goes into `state_of`."""
        blocks = Context.root_block
        assert blocks is not None, "a page is built inside its Blocks context"
        blocks.load(
            fn, inputs=list(inputs), outputs=list(outputs), show_progress="hidden", api_visibility="private"
        )

    @staticmethod
    def remember(controls: Mapping[str, Component]) -> None:
        """Write the controls' values into the address bar whenever the user changes one of them."""
        script = f"(...values) => window.automedbench.remember({json.dumps(list(controls))}, values)"
        for control in controls.values():
            control.change(
                fn=None,
                inputs=list(controls.values()),
                js=script,
                show_progress="hidden",
                api_visibility="private",
            )


def state_of(request: gr.Request) -> dict[str, str]:
    """The state that the page's address holds; bounded, for it comes from anywhere."""
    return {name[:40]: value[:2000] for name, value in request.query_params.items()}


def listed(text: str | None) -> list[str]:
    """The values of a list in an address."""
    return [part for part in (text or "").split(",") if part]


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple | set | frozenset) else str(value)
