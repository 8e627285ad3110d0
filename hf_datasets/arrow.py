"""The published tables: one row a run, one row a case, flat, with an explicit type for every column.

A column may be added; none is ever renamed, retyped or removed within a schema version. A part that an older program
wrote lacks the newer columns, and they are read as null. Nested things are flattened (limits, stages) or JSON text
(items, metrics), so that parts with different tasks, metrics and judges have one schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from hf_datasets.records import SCHEMA_VERSION, CaseRecord, RunLimits, RunRecord

Author = Literal["runner", "evaluator", "judge", "publisher"]
STAGES = ("s1", "s2", "s3", "s4", "s5")
DEFAULT_STATUS = "self-reported"
VERSION_KEY = b"automedbench_schema_version"
"""Of a part's schema metadata."""

TEXT, INT, FLOAT, FLAG, TIME = pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.timestamp("us", tz="UTC")
TEXTS = pa.list_(pa.string())


@dataclass(frozen=True)
class Column:
    """One column: its Arrow type, who alone defines its values, and what they are."""

    name: str
    type: pa.DataType
    by: Author
    text: str


@dataclass(frozen=True)
class PublishedRun:
    """A record with what publishing adds to it."""

    record: RunRecord
    sha256: str
    status: str = DEFAULT_STATUS


RUN_COLUMNS: tuple[Column, ...] = (
    Column("schema_version", INT, "runner", "Version of the record's form"),
    Column("run_id", TEXT, "runner", "Name of the run: [a-z0-9.-], at most 200 characters"),
    Column("status", TEXT, "publisher", "`self-reported`, `re-scored`, or `rejected: reason`"),
    Column("task", TEXT, "runner", "Task id"),
    Column("track", TEXT, "runner", "Track of the task"),
    Column("tier", TEXT, "runner", "How much the brief disclosed: lite, standard, pro"),
    Column("release", TEXT, "runner", "Which data: phantom, lite, full"),
    Column("agent", TEXT, "runner", "Name of the agent's profile"),
    Column("model", TEXT, "runner", "The agent's model as its provider calls it; null for a scripted agent"),
    Column("repeat", INT, "runner", "Which of the planned repeats this is"),
    Column("attempt", INT, "runner", "Physical attempt; failed ones are not published"),
    Column("overall", FLOAT, "runner", "(AGENTIC + TASK) / 2, in [0, 1]; null: unscored, as in all scores"),
    Column("agentic", FLOAT, "runner", ".25 S1 + .15 S2 + .35 S3 + .15 S4 + .10 S5, in [0, 1]"),
    Column("task_score", FLOAT, "evaluator", "Headline metric by the published rule, in [0, 1]"),
    Column("task_score_ungated", FLOAT, "evaluator", "The same without the completeness gate, in [0, 1]"),
    Column(
        "skill", FLOAT, "evaluator", "0 for the do-nothing submission, 1 for a perfect one; may be negative"
    ),
    Column("s1", FLOAT, "judge", "Plan, in [0, 1]"),
    Column("s2", FLOAT, "judge", "Setup, in [0, 1]"),
    Column("s3", FLOAT, "judge", "Validate, in [0, 1]"),
    Column("s4", FLOAT, "evaluator", "Inference, in [0, 1]"),
    Column("s5", FLOAT, "evaluator", "Submit, in [0, 1]"),
    Column(
        "items", TEXT, "judge", "JSON list of rubric items: id, stage, value, applies, agreement of the votes"
    ),
    Column("metric", TEXT, "evaluator", "Name of the headline metric"),
    Column("metric_set", TEXT, "evaluator", "Which components the headline used"),
    Column("metrics", TEXT, "evaluator", "JSON object: secondary metric to its value or null"),
    Column("n_cases", INT, "runner", "Cases of the data manifest, the denominator"),
    Column("n_scored", INT, "evaluator", "Cases that could be measured"),
    Column("completion", FLOAT, "evaluator", "Share of cases with all outputs present and valid"),
    Column("end_reason", TEXT, "runner", "Why the run ended, such as submitted, time, tokens, policy"),
    Column("end_detail", TEXT, "runner", "The same in words; empty where it could quote restricted data"),
    Column("error_codes", TEXTS, "runner", "E1..E5 with sub-type, such as E5.missing_files; never scored"),
    Column("turns", INT, "runner", "Replies of the model"),
    Column("tokens_in", INT, "runner", "Tokens read, the cached ones among them"),
    Column("tokens_out", INT, "runner", "Tokens written"),
    Column("tokens_cached", INT, "runner", "Tokens read from the provider's cache"),
    Column("cost_usd", FLOAT, "runner", "US dollars; null where the model has no known price"),
    Column("price_source", TEXT, "runner", "Where the price stands"),
    Column("seconds_working", FLOAT, "runner", "Without the waiting for the provider"),
    Column("seconds_wall", FLOAT, "runner", "From start to end"),
    *(
        Column(f"{stage}_{name}", kind, "runner", f"{stage.upper()}: {text}; null where nothing was judged")
        for stage in STAGES
        for name, kind, text in (
            ("start", FLOAT, "first second since the run began"),
            ("end", FLOAT, "last second since the run began"),
            ("seconds", FLOAT, "seconds at work"),
            ("turns", INT, "replies"),
            ("commands", INT, "commands run"),
            ("failed_commands", INT, "commands with another exit code than 0"),
            ("tokens_in", INT, "tokens read"),
            ("tokens_out", INT, "tokens written"),
            ("cost_usd", FLOAT, "US dollars"),
        )
    ),
    Column("started_at", TIME, "runner", "UTC"),
    Column("finished_at", TIME, "runner", "UTC"),
    Column("harness_version", TEXT, "runner", "Version of this package"),
    Column("code_sha256", TEXT, "runner", "Of the source of tasks, evaluator, hf_datasets and runner"),
    Column("task_sha256", TEXT, "runner", "Of the task's folder"),
    Column("manifest_sha256", TEXT, "runner", "Of the data manifest"),
    Column("brief_sha256", TEXT, "runner", "Of the words the agent was given"),
    Column(
        "data_revision",
        TEXT,
        "runner",
        "Commit of the release's dataset repository, where data came from one",
    ),
    Column("sandbox", TEXT, "runner", "docker or bubblewrap"),
    Column("network", TEXT, "runner", "What the agent could reach: none, allowlist, open"),
    Column("agent_environment", TEXT, "runner", "Digest of the agent's image"),
    Column("evaluator_environment", TEXT, "runner", "Digest of the evaluator's image"),
    Column("judge", TEXT, "judge", "rules or llm"),
    Column("judge_model", TEXT, "judge", "Model of an LLM judge"),
    Column("judge_sha256", TEXT, "judge", "Of an LLM judge's settings and words"),
    Column("judge_same_family", FLAG, "judge", "The judge's model is of the agent's provider"),
    Column("judge_votes", INT, "judge", "Votes on each item"),
    Column("judge_alpha", FLOAT, "judge", "Krippendorff's alpha of the votes, at most 1"),
    Column("judge_tokens", INT, "judge", "Tokens that judging took"),
    Column("judge_cost_usd", FLOAT, "judge", "US dollars that judging took"),
    Column("rubric_sha256", TEXT, "judge", "Of the rubric"),
    Column("evidence_sha256", TEXT, "judge", "Of what the judge was shown"),
    *(
        Column(f"limit_{name}", kind, "runner", f"Limit in force: {text}")
        for name, kind, text in (
            ("wall_seconds", INT, "seconds at work"),
            ("call_seconds", INT, "seconds a command"),
            ("turns", INT, "replies"),
            ("tokens", INT, "tokens"),
            ("cost_usd", FLOAT, "US dollars; null: none"),
            ("memory_mb", INT, "MiB of memory"),
            ("disk_mb", INT, "MiB of the workspace"),
            ("pids", INT, "processes"),
            ("cpus", FLOAT, "processors"),
        )
    ),
    Column("cpu_count", INT, "runner", "Processors of the machine"),
    Column("memory_mb", INT, "runner", "MiB of the machine"),
    Column("gpus", TEXTS, "runner", "Names of its GPUs"),
    Column("hardware_class", TEXT, "runner", "`cpu`, or the model of the first GPU"),
    Column("policy_warnings", INT, "runner", "Confirmed breaches that the agent was warned of"),
    Column("flags", TEXTS, "runner", "Signs of contamination; evidence, never a verdict"),
    Column("downloads", INT, "runner", "Requests that left the sandbox through the proxy"),
    Column("downloaded_bytes", INT, "runner", "Bytes that came back"),
    Column("record_sha256", TEXT, "publisher", "Of the bytes of this run's file under `records/`"),
    Column("cell_sha256", TEXT, "runner", "Of `cell.json`"),
    Column("trace_sha256", TEXT, "runner", "Of `trace.jsonl` as it was recorded, before any redaction"),
    Column("downloads_sha256", TEXT, "runner", "Of the log of requests"),
    Column("submission_sha256", TEXT, "runner", "Of the manifest of what was collected"),
    Column("report_sha256", TEXT, "evaluator", "Of `report.json`"),
    Column("judgement_sha256", TEXT, "judge", "Of `judgement.json`"),
    Column("supersedes", TEXT, "runner", "Digest of the record that this one corrects; that one has no row"),
)

CASE_COLUMNS: tuple[Column, ...] = (
    Column("schema_version", INT, "evaluator", "Version of the form"),
    Column("run_id", TEXT, "runner", "The run; its row in `runs` says agent, tier and release"),
    Column("record_sha256", TEXT, "publisher", "The record that these cases belong to"),
    Column("task", TEXT, "runner", "Task id"),
    Column("case_id", TEXT, "runner", "Case of the data manifest"),
    Column("status", TEXT, "evaluator", "scored, missing, invalid or limit"),
    Column("score", FLOAT, "evaluator", "In [0, 1]; 0 for a case that did not count"),
    Column("error_code", TEXT, "evaluator", "Why it scored 0, such as `wrong_shape`"),
    Column("metrics", TEXT, "evaluator", "JSON object: metric to its value or null"),
    Column("flags", TEXTS, "evaluator", "Such as `true_negative`"),
)


def _schema(columns: Iterable[Column]) -> pa.Schema:
    fields = [pa.field(column.name, column.type) for column in columns]
    return pa.schema(fields, metadata={VERSION_KEY: str(SCHEMA_VERSION).encode()})


RUNS, CASES = _schema(RUN_COLUMNS), _schema(CASE_COLUMNS)


def runs_table(runs: Sequence[PublishedRun]) -> pa.Table:
    """One row a run, in the order given."""
    rows = [run_row(run) for run in runs]
    return pa.table(
        [pa.array([row[name] for row in rows], RUNS.field(name).type) for name in RUNS.names], RUNS
    )


def run_row(run: PublishedRun) -> dict[str, Any]:
    """The row of a run: column to plain value."""
    record = run.record
    given: dict[str, Any] = {name: getattr(record, name) for name in _COPIED}
    given |= {name: str(getattr(record, name)) for name in ("track", "tier", "release", "end_reason")}
    given |= {name: list(getattr(record, name)) for name in ("error_codes", "gpus", "flags")}
    given |= {f"limit_{name}": getattr(record.limits, name) for name in RunLimits.model_fields}
    given |= dict.fromkeys(_SPAN_COLUMNS)
    for span in record.stages:
        for name in _SPAN_FIELDS:
            given[f"{span.stage.lower()}_{name}"] = getattr(span, name)
    items = [item.model_dump() for item in record.items]
    return given | {
        "items": _json(items), "metrics": _json(record.metrics), "record_sha256": run.sha256, "status": run.status,
    }  # fmt: skip


def cases_table(cases: Sequence[tuple[CaseRecord, str]]) -> pa.Table:
    """One row a case, given with the digest of the record it belongs to."""
    values: dict[str, list[Any]] = {
        "record_sha256": [sha256 for _, sha256 in cases],
        "metrics": [_json(case.metrics) for case, _ in cases],
    }
    columns = [
        pa.array(
            values[name] if name in values else [getattr(case, name) for case, _ in cases],
            CASES.field(name).type,
        )
        for name in CASES.names
    ]
    return pa.table(columns, CASES)


_json = json.JSONEncoder(sort_keys=True, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode


_SPAN_FIELDS = tuple(
    column.name.removeprefix("s1_") for column in RUN_COLUMNS if column.name.startswith("s1_")
)
_SPAN_COLUMNS = tuple(f"{stage}_{name}" for stage in STAGES for name in _SPAN_FIELDS)
_COPIED = tuple(
    column.name
    for column in RUN_COLUMNS
    if column.name in RunRecord.model_fields
    and column.type != TEXTS
    and column.name not in ("items", "metrics")
)
