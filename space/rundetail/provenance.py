"""Where a run's numbers come from: limits, versions, environments and the digests that prove them."""

from __future__ import annotations

from markupsafe import Markup

from hf_datasets.records import RunRecord
from space.markup import dollars, duration, el, pairs, section, size, table
from space.rundetail.parts import report_of
from space.site import Site
from space.snapshot import SHOWN_FILES, RunDetail


def provenance(run: RunDetail) -> Markup:
    """All of it, and the files to download."""
    record = run.record
    return el(
        "div",
        section("Identity", _identity(record)),
        section("Limits in force", _limits(record)),
        section("Machine and environment", _machine(record)),
        section("What left the sandbox", _network(record)),
        section("Judge", _judge(record)),
        section("Versions", _versions(run)),
        section("Digests (SHA-256)", _digests(record)),
        section("Files", _files(run)),
    )


def _identity(record: RunRecord) -> Markup:
    return pairs(
        [
            ("run", el("code", record.run_id)),
            ("task", record.task),
            ("tier", record.tier.value),
            ("release", record.release.value),
            ("agent", record.agent),
            ("model", record.model or "–"),
            ("repeat / attempt", f"{record.repeat} / {record.attempt}"),
            ("record schema", record.schema_version),
            ("harness", record.harness_version),
        ]
    )


def _limits(record: RunRecord) -> Markup:
    limits = record.limits
    return pairs(
        [
            ("time", duration(limits.wall_seconds)),
            ("one command", duration(limits.call_seconds)),
            ("turns", limits.turns),
            ("tokens", f"{limits.tokens:,}"),
            ("cost", dollars(limits.cost_usd)),
            ("memory", size(limits.memory_mb * 1e6)),
            ("disk", size(limits.disk_mb * 1e6)),
            ("processes", limits.pids),
            ("processors", f"{limits.cpus:g}"),
        ]
    )


def _machine(record: RunRecord) -> Markup:
    return pairs(
        [
            ("hardware class", record.hardware_class),
            ("processors", record.cpu_count),
            ("memory", size(record.memory_mb * 1e6)),
            ("GPUs", ", ".join(record.gpus) or "none"),
            ("sandbox", record.sandbox),
            ("agent's environment", record.agent_environment),
            ("evaluator's environment", record.evaluator_environment or "–"),
        ]
    )


def _network(record: RunRecord) -> Markup:
    return pairs(
        [
            ("network", record.network),
            ("requests through the proxy", record.downloads),
            ("bytes downloaded", size(record.downloaded_bytes)),
            ("flags", ", ".join(record.flags) or "none"),
            ("policy warnings", record.policy_warnings),
        ]
    )


def _judge(record: RunRecord) -> Markup:
    return pairs(
        [
            ("judge", record.judge or "none"),
            ("model", record.judge_model or "–"),
            ("votes", "–" if record.judge_votes is None else record.judge_votes),
            ("tokens", "–" if record.judge_tokens is None else f"{record.judge_tokens:,}"),
            ("cost", dollars(record.judge_cost_usd)),
        ]
    )


def _versions(run: RunDetail) -> Markup:
    report = report_of(run).value
    if report is None or not report.versions:
        return el("p", "The report that names them is not here.")
    return pairs(sorted(report.versions.items()))


def _digests(record: RunRecord) -> Markup:
    names = [name for name in type(record).model_fields if name.endswith("_sha256")]
    rows = [
        [name.removesuffix("_sha256"), el("code", getattr(record, name) or "–", class_="amb-digest")]
        for name in (*names, "supersedes", "data_revision")
    ]
    return table(("of", "digest"), rows, caption="Digests that the record carries")


def _files(run: RunDetail) -> Markup:
    found = [(name, path) for name in SHOWN_FILES if (path := run.file(name))]
    if not found:
        return el("p", "These results hold no file of this run.")
    links = [
        el(
            "li",
            el("a", name, href=Site.file_url(run.run_id, name), download=name),
            f" ({size(path.stat().st_size)})",
        )
        for name, path in found
    ]
    return el("ul", links)
