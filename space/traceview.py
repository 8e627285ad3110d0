"""One page of a trace as cards: who spoke, when, and what; every text escaped, every body bounded."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from markupsafe import Markup, escape

from space.markup import chip, dollars, duration, el, join, note
from space.traceindex import DAMAGED, ROLES, Event, TraceIndex

PAGE = 40
MAX_BODY = 12_000
"""Characters of one body on the page; of a longer one, head and tail."""
TAIL = 3000
FOLD = 1200
"""A longer body is folded until it is asked for."""

_NAMES = {
    "run": "run started",
    "reply": "agent",
    "exec": "command",
    "files": "files changed",
    "tool_error": "call refused",
    "provider_error": "provider error",
    "elided": "left out of the history",
    "submit": "submit",
    "limit": "limit reached",
    "end": "run ended",
    DAMAGED: "damaged line",
}


@dataclass(frozen=True)
class TracePage:
    """Which events are shown: the ``page``-th forty of those found, counted from 1."""

    found: Sequence[int]
    page: int

    @property
    def pages(self) -> int:
        return max(1, -(-len(self.found) // PAGE))

    @property
    def places(self) -> Sequence[int]:
        return self.found[(self.page - 1) * PAGE : self.page * PAGE]


def page_with(found: Sequence[int], page: int, event: int | None) -> TracePage:
    """The page that was asked for or, of one event, the one it stands on; never one that is not there."""
    if event is not None and event in found:
        page = found.index(event) // PAGE + 1
    last = TracePage(found, 1).pages
    return TracePage(found, min(max(1, page), last))


def show_trace(index: TraceIndex, shown: TracePage, words: str = "", event: int | None = None) -> Markup:
    """The cards of one page. ``words`` are marked, and so is the card of ``event``."""
    cards = [
        _card(one, index.roles[place], words.strip(), place == event)
        for place, one in zip(shown.places, index.events(shown.places), strict=True)
    ]
    if not cards:
        cards = [note("No event of this trace fits the search and the roles that were chosen.")]
    if index.cut and shown.page == shown.pages:
        cards.append(
            note("The trace goes on, but its last line was cut off or it has too many events.", "warning")
        )
    return el("div", cards, class_="amb-trace")


def _card(event: Event, role: str, words: str, chosen: bool) -> Markup:
    kind = event["type"]
    seq = event.get("seq", "?")
    head = el(
        "header",
        el("a", f"#{seq}", class_="amb-seq", title="Number of the event in the trace"),
        chip(_NAMES.get(kind, kind), f"role-{role}"),
        el("span", _facts(event), class_="amb-facts"),
        el("button", "Copy", type="button", class_="amb-copy", onclick=_COPY, aria_label=f"Copy event {seq}"),
    )
    bodies = [_body(name, text, words) for name, text in _bodies(event) if text]
    marks = "amb-event" + (" amb-chosen" if chosen else "") + (" amb-failed" if _failed(event) else "")
    return el("article", head, bodies, class_=marks, id=f"event-{seq}", data_role=role)


_COPY = (
    "const card=this.closest('article');"
    "navigator.clipboard.writeText([...card.querySelectorAll('pre')].map(p=>p.innerText).join('\\n\\n'))"
    ".then(()=>{this.textContent='Copied';setTimeout(()=>this.textContent='Copy',1200)})"
)


def _facts(event: Event) -> str:
    """Turn, time, cost and outcome, as far as the event has them."""
    usage = event.get("usage") or {}
    parts = [
        f"turn {event['turn']}" if "turn" in event else None,
        f"at {duration(_float(event.get('t')))}" if "t" in event else None,
        f"took {duration(_float(event['seconds']))}" if event.get("seconds") else None,
        f"{usage.get('input', 0)} + {usage.get('output', 0)} tokens"
        if isinstance(usage, dict) and usage
        else None,
        dollars(_float(event["cost_usd"])) if event.get("cost_usd") is not None else None,
        _outcome(event),
    ]
    return " · ".join(part for part in parts if part)


def _outcome(event: Event) -> str | None:
    if event["type"] == "exec":
        ended = next((name for name in ("timed_out", "oom", "disk_full") if event.get(name)), None)
        return ended.replace("_", " ") if ended else f"exit {event.get('exit_code')}"
    if event["type"] == "submit":
        return (
            "accepted" if event.get("accepted") else f"refused, {event.get('missing_total', 0)} files missing"
        )
    return None


def _failed(event: Event) -> bool:
    kind = event["type"]
    return kind in (DAMAGED, "tool_error", "provider_error") or (
        kind == "exec" and event.get("exit_code") != 0
    )


def _bodies(event: Event) -> list[tuple[str, str]]:
    """The texts of an event, each with its name; what the page does not know is shown as JSON."""
    match event["type"]:
        case "reply":
            calls = [_call(call) for call in _list(event.get("calls")) if isinstance(call, dict)]
            return [("", _text(event.get("text"))), *calls]
        case "exec":
            return [("output" + _dropped(event), _text(event.get("output")))]
        case "tool_error" | "provider_error" | "submit" if "message" in event or "summary" in event:
            missing = "\n".join(map(str, _list(event.get("missing"))))
            return [("", _text(event.get("message", event.get("summary")))), ("missing", missing)]
        case "files":
            changes = [change for change in _list(event.get("changes")) if isinstance(change, dict)]
            lines = [f"{one.get('change')}  {one.get('path')}  {one.get('size')} bytes" for one in changes]
            more = f"\n... and {event['more']} more" if event.get("more") else ""
            return [("", "\n".join(lines) + more), ("complete cases", str(event.get("complete_cases", "")))]
        case _:
            hidden = ("type", "seq", "t", "prev", "turn")
            rest = {key: value for key, value in event.items() if key not in hidden}
            return [("", event["text"] if event["type"] == DAMAGED else _pretty(rest))]


def _call(call: dict[str, Any]) -> tuple[str, str]:
    """A call's name, and its code where it has one, else its arguments as they came."""
    name, raw = _text(call.get("name")), _text(call.get("arguments"))
    try:
        arguments = json.loads(raw)
    except (ValueError, RecursionError):
        return name, raw
    if isinstance(arguments, dict) and isinstance(arguments.get("code"), str):
        language = arguments.get("language")
        return f"{name} ({language})" if isinstance(language, str) else name, arguments["code"]
    return name, _pretty(arguments)


def _dropped(event: Event) -> str:
    dropped = event.get("dropped_bytes")
    return f" ({dropped} of {event.get('output_bytes')} bytes were not kept)" if dropped else ""


def _body(name: str, text: str, words: str) -> Markup:
    shown = _clipped(text)
    pre = el("pre", highlighted(shown, words), tabindex="0")
    if len(shown) <= FOLD:
        return join([el("h5", name) if name else None, pre])
    folded = not (words and words.casefold() in shown.casefold())
    first = shown.splitlines()[0][:110] if shown.strip() else ""
    return el("details", el("summary", f"{name or 'text'}: {len(text):,} characters ", el("code", first)), pre,
              open=not folded)  # fmt: skip


def _clipped(text: str) -> str:
    if len(text) <= MAX_BODY:
        return text
    left_out = len(text) - MAX_BODY
    head = text[: MAX_BODY - TAIL]
    return f"{head}\n\n[... {left_out:,} characters left out here; the file holds them ...]\n\n{text[-TAIL:]}"


def highlighted(text: str, words: str) -> Markup:
    """The text, escaped, with every place of ``words`` marked, case left aside."""
    if not words:
        return escape(text)
    parts = re.split(f"({re.escape(words)})", text, flags=re.IGNORECASE)
    return join(el("mark", part) if place % 2 else part for place, part in enumerate(parts))


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else _pretty(value)


def _pretty(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False)


def _float(value: object) -> float:
    """A number as it can be shown; anything may stand in a trace."""
    try:
        number = float(value) if isinstance(value, int | float) else 0.0
    except OverflowError:
        return 0.0
    return number if isfinite(number) else 0.0


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


__all__ = ["ROLES", "TracePage", "page_with", "show_trace"]
