"""What of a run folder may be published: the record and its cases, and the files that its task's terms allow.

``none``: scores only. ``derived``: what the agent handed in as well, nothing that shows its input. ``allowed``: also
previews (they hold pictures of the input), the trace, and report and judgement (a model's judgement quotes the trace).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError

from evaluator.files import sha256_file
from evaluator.trace import EndReason
from evaluator.untrusted import MEGABYTE, Refused, open_regular, read_bytes
from hf_datasets.chunks import CHUNK_BYTES
from hf_datasets.outputs import pack_outputs
from hf_datasets.phi import Finding, screen_text, screen_trace
from hf_datasets.records import CaseRecord, RecordError, RunRecord, dump_record
from hf_datasets.redact import Redactor as Redactor
from hf_datasets.redact import Unredactable
from hf_datasets.run_folders import MAX_REPORT_BYTES, RECORD, REPORT, read_cases, read_record
from tasks.registry import TaskError, load_task
from tasks.schema import Redistribution, Release

JUDGEMENT = "judgement.json"
CELL, TRACE, SUBMITTED = "cell.json", "trace.jsonl", "submission/manifest.json"
MAX_TRACE_BYTES, MAX_PREVIEW_BYTES = 1024 * MEGABYTE, MEGABYTE

_PREVIEW = re.compile(r"[\w-][\w.-]{0,150}\.webp")
_QUOTES = frozenset({EndReason.POLICY, EndReason.PROVIDER_ERROR, EndReason.INFRA_ERROR})
"""Ends whose detail may quote what the agent ran or what a service answered."""


@dataclass(frozen=True)
class PublishedFile:
    """One more file of a run, by its path in the results repository."""

    path_in_repo: str
    content: bytes | Path


@dataclass(frozen=True)
class Publication:
    """All that is published of one run. With findings nothing of it is; the other runs go on.

    ``record_bytes`` are the bytes of ``record.json``; ``withheld`` says in words what stays here and why.
    """

    record: RunRecord
    record_bytes: bytes
    cases: tuple[CaseRecord, ...]
    files: tuple[PublishedFile, ...] = ()
    withheld: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def publication(
    folder: Path, redactor: Redactor, *, outputs: Path | None = None, scores_only: bool = False
) -> Publication:
    """What may be published of a finished run.

    Parameters
    ----------
    folder
        The run folder.
    redactor
        Knows the keys of this machine.
    outputs
        Where what the agent handed in is packed; it is not published without.
    scores_only
        Publish scores only, whatever the terms allow.

    Raises
    ------
    RecordError
        The record or the report cannot be read, or a file is not the one that the record was sealed over; one line that
        names the file.
    """
    record, record_bytes = read_record(folder)
    try:
        _loaded(record_bytes)
    except ValueError as error:
        raise RecordError(f"{folder / RECORD}: {error}") from None
    terms = Redistribution.NONE if scores_only else terms_of(record)
    run = _Leaving(folder, record, redactor)
    public, findings = run.public_record(terms)
    scores = Publication(
        record, record_bytes, read_cases(folder, record), (), _withheld(record, terms), findings
    )
    if public is not None:
        scores = replace(scores, record=public, record_bytes=dump_record(public).encode())
    if terms is Redistribution.NONE:
        return scores
    run.require_sealed()
    files, more = run.files(terms, outputs)
    return replace(scores, files=files, findings=findings + more)


def terms_of(record: RunRecord) -> Redistribution:
    """What may leave of a run: phantoms are our own, an unknown task's data are nobody's to pass on."""
    if record.release is Release.PHANTOM:
        return Redistribution.ALLOWED
    try:
        return load_task(record.task).source.redistribution
    except TaskError:
        return Redistribution.NONE


def _withheld(record: RunRecord, terms: Redistribution) -> tuple[str, ...]:
    if terms is Redistribution.ALLOWED:
        return ()
    kept = "previews, trace, report and judgement" + (", outputs" if terms is Redistribution.NONE else "")
    return (f"{kept}: redistribution of {record.task} on release {record.release} is '{terms_of(record)}'",)


@dataclass(frozen=True)
class _Leaving:
    """A run whose files are looked at one by one before they leave."""

    folder: Path
    record: RunRecord
    redactor: Redactor

    def require_sealed(self) -> None:
        """Refuse files that were changed since the record was sealed over them."""
        record = self.record
        sealed = {
            CELL: record.cell_sha256,
            TRACE: record.trace_sha256,
            JUDGEMENT: record.judgement_sha256,
            SUBMITTED: record.submission_sha256,
        }
        for name, digest in sealed.items():
            path = self.folder / name
            if path.is_file() and sha256_file(path) != digest:
                raise RecordError(f"{path}: is not the file that {RECORD} was sealed over")

    def public_record(self, terms: Redistribution) -> tuple[RunRecord | None, tuple[Finding, ...]]:
        """The record with secrets taken out; None where it stays as it is, byte for byte."""
        before = self.record.model_dump(mode="json")
        # One look at the whole text saves one at each of some 250 strings.
        tainted = self.redactor.taints(json.dumps(before, ensure_ascii=False).encode())
        after = self.redactor.json(before) if tainted else dict(before)
        if terms is not Redistribution.ALLOWED and self.record.end_reason in _QUOTES:
            after["end_detail"] = ""
        if after == before:
            return None, ()
        try:
            return RunRecord.model_validate_json(json.dumps(after)), ()
        except ValidationError as error:
            field = ".".join(str(part) for part in error.errors()[0]["loc"])
            return None, (Finding(RECORD, f"{field} holds a secret; it cannot be published under this name"),)

    def files(
        self, terms: Redistribution, outputs: Path | None
    ) -> tuple[tuple[PublishedFile, ...], tuple[Finding, ...]]:
        """What leaves beside the record, and what forbids it."""
        findings: list[Finding] = []
        wise = self
        if (self.folder / TRACE).is_file():
            try:
                with self._open(TRACE) as trace:
                    seen = self.redactor.having_seen(iter(lambda: trace.read(CHUNK_BYTES), b""))
            except Unredactable as error:
                return (), (Finding(TRACE, f"{error}: it cannot be searched for secrets"),)
            wise = replace(self, redactor=seen)
        found = [*wise._outputs(outputs, findings)] if outputs else []
        if terms is Redistribution.ALLOWED:
            found += [*wise._trace(findings), *wise._details(findings), *wise._previews(findings)]
        findings += (
            Finding("names", "the path of a published file holds a secret")
            for file in found
            if wise.redactor.holds_secret(file.path_in_repo)
        )
        return tuple(found), tuple(findings)

    def _trace(self, findings: list[Finding]) -> Iterator[PublishedFile]:
        import zstandard

        if not (self.folder / TRACE).is_file():
            return
        with self._open(TRACE) as trace:
            findings += screen_trace(iter(lambda: trace.read(CHUNK_BYTES), b""), TRACE)
            trace.seek(0)
            try:
                packer = zstandard.ZstdCompressor(level=10).compressobj()
                redacted = self.redactor.jsonl(iter(lambda: trace.read(CHUNK_BYTES), b""))
                packed = b"".join((*(packer.compress(block) for block in redacted), packer.flush()))
            except Unredactable as error:
                findings.append(Finding(TRACE, f"{error}: it cannot be searched for secrets"))
                return
        yield PublishedFile(f"traces/{self.record.run_id}.jsonl.zst", packed)

    def _details(self, findings: list[Finding]) -> Iterator[PublishedFile]:
        """Cell, report and judgement; one that holds no secret keeps its bytes."""
        for name in (CELL, REPORT, JUDGEMENT):
            path = self.folder / name
            if not path.is_file():
                continue
            raw = _read(path, MAX_REPORT_BYTES)
            try:
                content = _loaded(raw)
                redacted = self.redactor.json(content)
            except (ValueError, RecursionError):
                findings.append(Finding(name, "is not JSON: it cannot be searched for secrets"))
                continue
            findings += screen_text(raw.decode("utf-8", "replace"), name)
            if redacted != content and name != JUDGEMENT:
                continue  # its digest stands in the record: it is published as it is or not at all
            if redacted != content:
                raw = (json.dumps(redacted, indent=1) + "\n").encode()
            yield PublishedFile(f"details/{self.record.run_id}/{name}", raw)

    def _previews(self, findings: list[Finding]) -> Iterator[PublishedFile]:
        for path in sorted((self.folder / "previews").glob("*.webp")):
            if not _PREVIEW.fullmatch(path.name):
                findings.append(Finding("previews", f"unexpected file name of {len(path.name)} characters"))
                continue
            raw = _read(path, MAX_PREVIEW_BYTES)
            if self.redactor.screen([raw]):
                findings.append(Finding(f"previews/{path.name}", "holds a secret"))
            yield PublishedFile(f"previews/{self.record.run_id}/{path.name}", raw)

    def _outputs(self, target: Path, findings: list[Finding]) -> Iterator[PublishedFile]:
        packed = pack_outputs(
            self.folder / "submission", target / f"{self.record.run_id}.tar.zst", self.redactor, findings
        )
        if packed is not None:
            yield PublishedFile(f"outputs/{self.record.run_id}.tar.zst", packed)

    def _open(self, name: str) -> BinaryIO:
        try:
            return open_regular(self.folder / name, MAX_TRACE_BYTES)
        except Refused as refused:
            raise RecordError(f"{self.folder / name}: {refused.message}") from None


def _loaded(raw: bytes) -> Any:
    """JSON that says each thing once: of a name that stands twice only the last value would be looked at."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a name stands twice in it")
        return found

    return json.loads(raw, object_pairs_hook=once)


def _read(path: Path, max_bytes: int) -> bytes:
    try:
        return read_bytes(path, max_bytes)
    except Refused as refused:
        raise RecordError(f"{path}: {refused.message}") from None
