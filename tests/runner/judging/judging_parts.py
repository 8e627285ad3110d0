"""Answers of a judge, made to fit what it was asked."""

from __future__ import annotations

from evaluator.judge.notebook import write_notebook
from evaluator.rubric import load_rubric

KEY = "sk-judge-0123456789abcdef"
TASK = "bccd-det-task"
MODEL = "anthropic/claude-opus-4.6"


def citable(material, budget=24_000):
    """For every item of the rubric, one event that it may rest on."""
    rubric, notebook = load_rubric(material.assignment.track), write_notebook(material, budget)
    found = {
        item.id: next((row.seq for row in notebook.rows if notebook.may_rest_on(item, row.seq)), None)
        for item in rubric.items
    }
    return {item: f"E{seq}" for item, seq in found.items() if seq is not None}


def asked_items(request):
    schema = request.body["response_format"]["json_schema"]["schema"]
    return schema["properties"]["items"]["properties"]


def opinion(value, events, reason="the events show it"):
    return {"reason": reason, "evidence": list(events), "value": value}


def verdict(request, events, value=None, **own):
    """A full answer to ``request``; the best value everywhere unless told otherwise."""
    items = {}
    for item, schema in asked_items(request).items():
        best = max(schema["properties"]["value"]["enum"]) if value is None else value
        items[item] = own.get(item, opinion(best, [events[item]]))
    return {"items": {item: answer for item, answer in items.items() if answer is not None}}
