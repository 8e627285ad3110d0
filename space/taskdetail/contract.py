"""What a task gives, wants, measures and allows, and where its data come from."""

from __future__ import annotations

import json

from markupsafe import Markup

from evaluator.metrics.registry import metric_info
from space.markup import chip, dollars, duration, el, join, pairs, section, size, table
from space.taskdetail.catalogue import LEAVES
from tasks.contract import output_schema
from tasks.schema import (
    OUTPUT_ROOT,
    AnswerOutput,
    BoxOutput,
    ImageOutput,
    LabelOutput,
    MaskOutput,
    ReportOutput,
    Task,
)


def head(task: Task) -> Markup:
    """Title, badges and clinical background."""
    badges = [
        chip(task.track.value),
        chip(task.modality),
        chip(f"one {task.unit} a case"),
        chip(f"published as {task.paper_name or task.id}", "good")
        if task.in_paper
        else chip("not in the paper"),
        chip(f"may leave: {LEAVES[task.source.redistribution]}"),
    ]
    return el(
        "div",
        el("h2", task.title, class_="amb-h1"),
        el("p", join(badges, " "), class_="amb-badges"),
        el("p", task.background, class_="amb-lead"),
    )


def contract(task: Task) -> Markup:
    """Inputs, outputs, metrics, limits, models and terms."""
    return el(
        "div",
        section("Given", _inputs(task)),
        section("Wanted", _output(task)),
        section("Measured", _metrics(task)),
        section("Limits of a run", _limits(task)),
        section("Models that the briefs name", _models(task)),
        section("Data and licence", _source(task)),
    )


def _inputs(task: Task) -> Markup:
    rows = [[el("code", given.name), given.format, given.description] for given in task.inputs]
    return table(
        ("file of each case", "format", "what it is"), rows, caption="Public inputs", class_="amb-wide"
    )


def _output(task: Task) -> Markup:
    files = [el("code", f"{OUTPUT_ROOT}/<case>/{name}") for name in task.output.filenames]
    schema = json.dumps(output_schema(task), indent=1, ensure_ascii=False)
    return join(
        [
            el("p", "Every case of the manifest needs ", join(files, " and "), "."),
            _details(task),
            section(
                "The contract as JSON Schema", el("pre", schema, class_="amb-plan", tabindex="0"), open_=False
            ),
        ]
    )


def _details(task: Task) -> Markup:
    match task.output:
        case MaskOutput(targets=targets, files=files):
            labels = {file.name: file.labels for file in files}
            rows = [
                [
                    target.name,
                    el("code", target.file),
                    ", ".join(f"{one} {labels[target.file].get(one, '')}".strip() for one in target.ids),
                    "lesion: may be absent" if target.lesion else "organ",
                    f"{target.nsd_tolerance_mm:g} mm",
                ]
                for target in targets
            ]
            heads = ("structure", "file", "labels", "kind", "surface tolerance")
            return table(heads, rows, caption="Structures, each with its own Dice", class_="amb-wide")
        case ImageOutput(scale=scale, unit=unit, data_range=(low, high), shape_of=name):
            shape = f"that of {name}" if scale == 1 else f"{scale} times that of {name}"
            return pairs([("shape", shape), ("unit", unit), ("range of the metric", f"{low:g} to {high:g}")])
        case BoxOutput(classes=classes, max_detections=most):
            return pairs([("classes", ", ".join(classes)), ("boxes that count, an image and class", most)])
        case LabelOutput(classes=classes):
            return pairs([("classes", ", ".join(classes))])
        case AnswerOutput(mode=mode):
            return pairs([("answer", "the letter of one option" if mode == "choice" else "a few words")])
        case ReportOutput(min_chars=least, max_chars=most, sections=sections):
            length = f"{least} to {most} characters"
            return pairs([("length", length), ("sections", ", ".join(sections) or "none prescribed")])


def _metrics(task: Task) -> Markup:
    names = dict.fromkeys((task.metric.headline, *task.metric.sets, *task.metric.secondary))
    rows = []
    for name in names:
        info = metric_info(name)
        if info is not None:
            kind = (
                "headline"
                if name == task.metric.headline
                else "set"
                if name in task.metric.sets
                else "beside it"
            )
            rows.append([el("code", name), kind, info.definition, info.range, info.source])
    heads = ("metric", "role", "definition", "range", "source")
    return table(heads, rows, caption="Metrics; the headline is the task score", class_="amb-wide")


def _limits(task: Task) -> Markup:
    limits = task.limits
    return pairs(
        [
            ("working time", duration(limits.wall_seconds)),
            ("one command", duration(limits.call_seconds)),
            ("turns", limits.turns),
            ("tokens", f"{limits.tokens:,}"),
            ("cost", "no limit" if limits.cost_usd is None else dollars(limits.cost_usd)),
            ("memory", size(limits.memory_mb * 1e6)),
            ("disk", size(limits.disk_mb * 1e6)),
            ("processors", f"{limits.cpus:g}"),
            ("repeats of a cell", task.repeats),
        ]
    )


def _models(task: Task) -> Markup:
    named = [
        ("Lite", task.tiers.lite.model),
        *(("Standard", model) for model in task.tiers.standard.candidates),
    ]
    rows = [[tier, model.name, model.source, model.note or "–"] for tier, model in named]
    return table(("tier", "model", "source", "note"), rows, caption="Named models", class_="amb-wide")


def _source(task: Task) -> Markup:
    source = task.source
    return join(
        [
            pairs(
                [
                    ("data set", el("a", source.dataset, href=str(source.url), rel="noreferrer")),
                    ("licence", source.license),
                    ("access", source.access),
                    ("may leave the machine", LEAVES[source.redistribution]),
                    ("revision", source.revision or "–"),
                ]
            ),
            el("p", source.acquisition),
        ]
    )
