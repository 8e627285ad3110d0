"""What the About page says; every number and definition is read from where the evaluator reads it."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from markupsafe import Markup

from evaluator.fired import READ_SUBTYPES, SUBTYPES, TITLES
from evaluator.metrics.registry import METRICS, MetricInfo
from evaluator.rubric import load_rubric
from evaluator.score import SCORING_VERSION
from evaluator.trace import EndReason
from space.markup import el, join, pairs, section, table
from space.rundetail.overview import code_title
from space.taskdetail.catalogue import LEAVES
from tasks import scoring
from tasks.registry import all_tasks
from tasks.schema import Tier, Track

CHANGELOG = Path(__file__).parents[1] / "docs" / "changelog.md"
_BETTER = {"higher": "higher is better", "lower": "lower is better", "zero": "zero is best"}

_TIER_TEXT = {
    Tier.LITE: "the brief names one model and how to get it; plan items that this settles are credited",
    Tier.STANDARD: "the brief names candidates, and the agent chooses",
    Tier.PRO: "the brief names no method; experimental, never averaged with the others",
}
_ENDS = {
    EndReason.SUBMITTED: "the agent handed in",
    EndReason.TIME: "the working time was used up",
    EndReason.TURNS: "the turns were used up",
    EndReason.TOKENS: "the tokens were used up",
    EndReason.COST: "the money was used up",
    EndReason.AGENT_STOP: "the agent stopped without handing in",
    EndReason.MALFORMED: "calls that nobody could read, again and again",
    EndReason.POLICY: "a confirmed breach of the rules: all scores are 0",
    EndReason.PROVIDER_ERROR: "the model's provider failed: run again, counted as missing until then",
    EndReason.INFRA_ERROR: "the machine failed: run again, counted as missing until then",
}


def method() -> Markup:
    """What is measured, and how a run goes."""
    tasks = all_tasks()
    paper = sum(task.in_paper for task in tasks)
    tracks = [f"{track.value} ({sum(task.track is track for task in tasks)})" for track in Track]
    return el(
        "div",
        el(
            "p",
            "AutoMedBench measures agents that do medical-AI research. An agent, one language model with one code "
            "tool, receives a brief, public medical data and a time limit, works in an isolated sandbox, and hands in "
            "masks, restored images, answers, reports or boxes. The host keeps the trace. An evaluator without a "
            "network scores what was handed in against references that the agent can never reach; a judge scores how "
            "the work was done.",
            class_="amb-lead",
        ),
        pairs(
            [
                ("tasks", f"{len(tasks)}, {paper} of them published"),
                ("tracks", ", ".join(tracks)),
                ("version", version("automedbench")),
                ("scoring version", SCORING_VERSION),
            ]
        ),
        section("Tiers", _definitions((tier.value, text) for tier, text in _TIER_TEXT.items())),
        section("How a run can end", _definitions((end.value, text) for end, text in _ENDS.items())),
        section("What may leave a machine", _definitions((key.value, text) for key, text in LEAVES.items())),
    )


def how_scored() -> Markup:
    """The formulas and the rubric's items."""
    weighted = " + ".join(f"{weight:g} {stage}" for stage, weight in scoring.STAGE_WEIGHTS.items())
    formulas = pairs(
        [
            ("OVERALL", f"{scoring.AGENTIC_SHARE:g} AGENTIC + {scoring.TASK_SHARE:g} TASK"),
            ("AGENTIC", weighted),
            (
                "TASK",
                "the task's headline metric over all cases of the manifest; a missing or invalid case is 0",
            ),
            (
                "S4 Inference",
                f"{scoring.S4_COMPLETION_SHARE:g} share of complete cases + {scoring.S4_VALID_SHARE:g} if all hold",
            ),
            (
                "S5 Submit",
                f"{scoring.S5_POSITIVE_SHARE:g} if a case scores above 0 + {scoring.S5_VALID_SHARE:g} "
                "if the format is valid",
            ),
            ("missing", "a dash: unscored is never turned into a number, and stands last in both directions"),
        ]
    )
    rubric = load_rubric(Track.SEGMENTATION)
    rows = [
        [
            el("code", item.id),
            f"{item.stage} {scoring.STAGE_NAMES[item.stage]}",
            item.question,
            item.decided_by,
        ]
        for item in rubric.items
    ]
    heads = ("item", "stage", "question (segmentation's words)", "decided by")
    return join(
        [
            formulas,
            section("Rubric of S1 to S3", table(heads, rows, caption="Rubric items", class_="amb-wide")),
            section("Error codes: diagnostic, never scored", _codes()),
        ]
    )


def _codes() -> Markup:
    rows = [[code, code_title(code), stage, subtype, "-"] for subtype, (code, stage) in SUBTYPES.items()]
    rows += [
        [code, code_title(code), stage, name, text] for name, (code, stage, text) in READ_SUBTYPES.items()
    ]
    rows.sort()
    assert {str(row[0]) for row in rows} == set(TITLES), "every code has a sub-type"
    heads = ("code", "kind", "stage", "sub-type", "seen by a reader alone")
    return table(heads, rows, caption="Error codes", class_="amb-wide")


def metrics() -> Markup:
    """Every metric's definition, from the evaluator's own registry."""
    rows = [_metric(metric) for metric in METRICS.values()]
    heads = ("metric", "definition", "range", "better", "source")
    return table(heads, rows, caption=f"{len(rows)} metrics", class_="amb-wide")


def _metric(metric: MetricInfo) -> list[object]:
    return [
        el("code", metric.name, id=f"metric-{metric.name}"),
        metric.definition,
        metric.range,
        _BETTER[metric.better],
        metric.source,
    ]


def limits_of_it() -> Markup:
    """What the numbers do not say."""
    said = (
        "A rank is not a difference: agents of one tie group cannot be told apart by these runs. Read the intervals.",
        "Phantoms are generated; they test the machinery and say nothing about patients.",
        "The data sets are public: a model may have seen them. Flags name signs of it; they are evidence, no verdict.",
        "A judge reads a trace, and judges differ. Runs of different judges never share a board; how well one agrees "
        "with itself stands in every record.",
        "Report metrics compare words and rule-read findings; they do not tell whether a report is safe to act on.",
        "Records are self-reported until somebody has scored them again from the run's files.",
        "Nothing here is a medical device, and no score supports a clinical decision.",
    )
    return el("ul", [el("li", text) for text in said], class_="amb-list")


CITATION = """@misc{automedbench2026,
  title         = {AutoMedBench: Towards Medical AutoResearch},
  year          = {2026},
  eprint        = {2606.01961},
  archivePrefix = {arXiv},
  primaryClass  = {cs.AI}
}"""


def citation() -> Markup:
    """How to cite the benchmark."""
    return el(
        "div",
        el("p", "This is an independent implementation of the benchmark described in the paper; cite the paper, and "
                "name the version and the release whose numbers you use."),
        el("pre", CITATION, class_="amb-plan", tabindex="0"),
    )  # fmt: skip


def changelog() -> str:
    """Markdown of ours; one line where the documentation is not installed beside the package."""
    try:
        return CHANGELOG.read_text("utf-8").partition("\n")[2].strip()
    except OSError:
        return "The changelog stands in docs/changelog.md of the repository."


def _definitions(rows: Iterable[tuple[str, str]]) -> Markup:
    return pairs((el("code", name), text) for name, text in rows)
