"""F1-RadGraph (Delbrouck et al., 2022): overlap of the entity graphs of two reports.

And the local model that draws them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

Graph = Mapping[str, Any]
"""``{"entities": {id: {"tokens": str, "label": str, "relations": [[kind, id], ...]}}}``."""

GraphMaker = Callable[[Sequence[str]], list[Graph]]
"""Reports -> their graphs."""

Level = Literal["entity_only", "partial", "complete"]

MODEL = "radgraph"


def graph_f1(prediction: Graph, reference: Graph, level: Level = "partial") -> float:
    """F1 of the sets of entities of two graphs.

    Parameters
    ----------
    prediction, reference : Graph
    level : {"entity_only", "partial", "complete"}
        What tells entities apart: words and label; also whether there is a relation (the published choice);
        also each relation with the words it points to.

    Returns
    -------
    float
        In [0, 1]; 0 when either graph is empty, even both.
    """
    ours, theirs = _items(prediction, level), _items(reference, level)
    hits = len(ours & theirs)
    return 2 * hits / (len(ours) + len(theirs)) if hits else 0.0


def radgraph_model(folder: Path) -> GraphMaker:
    """The RadGraph model unpacked in ``folder/radgraph``, its tokenizer cached in ``folder/huggingface``.

    Offline.
    """
    os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
    os.environ["HF_HUB_CACHE"] = str(folder / "huggingface")
    model = import_module("radgraph").RadGraph(
        model_type=MODEL,
        model_cache_dir=str(folder),
        tokenizer_cache_dir=str(folder / "huggingface"),
        cuda=-1,
    )

    def draw(reports: Sequence[str]) -> list[Graph]:
        texts = [" ".join(report.split()) for report in reports]
        present = [text for text in texts if text]
        drawn = model(present) if present else {}
        graphs = iter([drawn[str(place)] for place in range(len(present))])
        return [next(graphs) if text else {"entities": {}} for text in texts]

    return draw


def _items(graph: Graph, level: Level) -> set[tuple[Any, ...]]:
    entities: Mapping[str, Mapping[str, Any]] = graph["entities"]
    items: set[tuple[Any, ...]] = set()
    for entity in entities.values():
        words, label, relations = entity["tokens"].lower(), entity["label"], entity["relations"]
        if level == "entity_only" or not relations:
            items.add((words, label))
        elif level == "partial":
            items.add((words, label, True))
        else:
            items.update(
                (words, label, kind, entities[target]["tokens"].lower()) for kind, target in relations
            )
    return items
