"""Signatures of records on their way: sent beside what they were made over, and held against it where they arrive."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from evaluator.untrusted import Refused, read_bytes
from hf_datasets.arrow import CASES, RUNS, PublishedRun, runs_table
from hf_datasets.folders import remove
from hf_datasets.hub import Change, Head, git_oid
from hf_datasets.records import RecordError, RunRecord, load_record
from hf_datasets.results.layout import (
    CASES_PARTS,
    PACKED,
    RECORDS,
    RUNS_PARTS,
    STATUS,
    own_paths,
    record_of_signature,
    run_of_record,
)
from hf_datasets.results.packing import Files, add_packs, add_rows
from hf_datasets.results.tables import read_parts
from hf_datasets.run_folders import RECORD
from hf_datasets.signing import MAX_SIGNATURE, SUFFIX, SigningError, require_signature, verify

# --- sending ---


def signature_of(folder: Path, sealed: bytes, published: bytes) -> tuple[bytes | None, tuple[str, ...]]:
    """The signature in a run folder, where it holds for what is published; otherwise, in words, why it stays here.

    Parameters
    ----------
    sealed, published
        The bytes of ``record.json``, and those that leave.
    """
    path = folder / (RECORD + SUFFIX)
    if not path.exists():
        return None, ()
    if sealed != published:
        return None, (f"{path.name}: the record is published redacted, the signature is of the one here",)
    try:
        signature = read_bytes(path, MAX_SIGNATURE)
        require_signature(sealed, signature)
    except Refused as refused:
        return None, (f"{path.name}: {refused.message}",)
    except SigningError as error:
        return None, (f"{path.name}: {error}",)
    return signature, ()


@dataclass
class Late:
    """Signatures of records that were published without one, by the path where each belongs."""

    head: Head
    signatures: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._records = {oid: path for path, oid in self.head.files.items() if run_of_record(path)}

    def is_there(self, published: bytes) -> bool:
        """Whether a record with these bytes is published."""
        return git_oid(published) in self._records

    def look(self, folder: Path, sealed: bytes, published: bytes) -> tuple[str, ...]:
        """Note the signature in the folder of a published run, if it is new; in words what stays here and why."""
        path = self._records[git_oid(published)] + SUFFIX
        if path in self.head.files:  # one is enough, and nothing that is published is rewritten
            return ()
        signature, words = signature_of(folder, sealed, published)
        if signature is not None:
            self.signatures[path] = signature
        return words

    def groups(self, size: int) -> list[dict[str, bytes]]:
        """The signatures in groups that one commit takes."""
        paths = sorted(self.signatures)
        return [
            {path: self.signatures[path] for path in paths[start : start + size]}
            for start in range(0, len(paths), size)
        ]


def signatures_change(head: Head, signatures: Mapping[str, bytes]) -> Change | None:
    """What puts signatures beside their records; None where each record has one by now."""
    new = {path: content for path, content in signatures.items() if path not in head.files}
    if not new:
        return None
    files = Files({**new})
    add_packs(files, [packed_signature(path, content) for path, content in new.items()])
    return Change(f"Add {len(new)} signature{'' if len(new) == 1 else 's'}", files.write)


def packed_signature(path: str, signature: bytes) -> tuple[str, str, str, bytes]:
    """The row of a signature in a pack."""
    return path, run_of_signature(path), sha256(signature).hexdigest(), signature


def run_of_signature(path: str) -> str:
    return run_of_record(record_of_signature(path) or "") or ""


# --- checking ---


def unsigned(folder: Path, allowed_signers: Path) -> dict[str, str]:
    """Path of each record in a pulled folder that no allowed signer signed -> why, in words."""

    def fault(path: Path) -> str | None:
        signature = path.with_name(path.name + SUFFIX)
        if not signature.exists():
            return "is not signed"
        try:
            verify(path.read_bytes(), read_bytes(signature, MAX_SIGNATURE), allowed_signers)
        except Refused as refused:
            return f"its signature: {refused.message}"
        except SigningError as error:
            return f"its signature: {error}"
        return None

    paths = record_files(folder)
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # each waits for a program of its own
        return {
            _name(folder, path): why for path, why in zip(paths, pool.map(fault, paths), strict=True) if why
        }


def record_files(folder: Path) -> list[Path]:
    """The records of a pulled folder, in the order of their paths."""
    found = sorted((folder / RECORDS).glob("*/*.json"))
    return [path for path in found if run_of_record(_name(folder, path))]


def keep_signed(folder: Path, allowed_signers: Path) -> list[str]:
    """Take out of a pulled folder what no allowed signer vouches for; a line for each record that goes.

    The rows of runs are written anew from the signed records; cases go by the record that they name. A run whose row
    is not of a signed record goes whole, so that an older record does not pass for its result.
    """
    left_out = unsigned(folder, allowed_signers)
    signed: dict[str, RunRecord] = {}
    for path in record_files(folder):
        name = _name(folder, path)
        if name in left_out:
            continue
        try:
            record = load_record(path)
        except RecordError as error:
            left_out[name] = str(error).removeprefix(f"{path}: ")
            continue
        if record.run_id == run_of_record(name):
            signed[sha256(path.read_bytes()).hexdigest()] = record
        else:
            left_out[name] = f"is the record of {record.run_id}"
    problems, run_ids = _keep_rows(folder, signed)
    for path in record_files(folder):
        name = _name(folder, path)
        if run_of_record(name) not in run_ids:
            left_out.setdefault(name, "is signed, but the row of this run is of another record")
        if name in left_out:
            path.unlink()
            path.with_name(path.name + SUFFIX).unlink(missing_ok=True)
    for run_id in {run_of_record(name) for name in left_out} - run_ids:
        _remove_files(folder, run_id or "")
    remove(folder / PACKED)  # the same bytes once more
    return [*problems, *(f"{name}: {why}; left out" for name, why in sorted(left_out.items()))]


def _keep_rows(folder: Path, signed: Mapping[str, RunRecord]) -> tuple[tuple[str, ...], set[str]]:
    """Write the tables anew with the rows of signed records; what could not be read, and the runs that have a row."""
    runs, cases = read_parts(folder / RUNS_PARTS, RUNS), read_parts(folder / CASES_PARTS, CASES)
    rows = zip(*(runs.table[name].to_pylist() for name in ("record_sha256", "run_id", "status")), strict=True)
    corrected = {record.supersedes for record in signed.values()}
    kept = {
        digest: PublishedRun(signed[digest], digest, status)
        for digest, run_id, status in rows
        if digest in signed and signed[digest].run_id == run_id and digest not in corrected
    }
    files = Files()
    add_rows(
        files,
        runs_table(list(kept.values())),
        cases.table.filter(pc.is_in(cases.table["record_sha256"], pa.array(list(kept), pa.string()))),
    )
    for parts in (RUNS_PARTS, CASES_PARTS):
        remove(folder / parts)
        (folder / parts).mkdir(parents=True)
    for name, content in files.write.items():
        assert isinstance(content, bytes)
        (folder / name).write_bytes(content)
    return (*runs.problems, *cases.problems), {run.record.run_id for run in kept.values()}


def _remove_files(folder: Path, run_id: str) -> None:
    for name in (*own_paths(run_id), f"{STATUS}/{run_id}.json"):
        path = folder / name
        if path.is_dir():
            remove(path)
        else:
            path.unlink(missing_ok=True)


def _name(folder: Path, path: Path) -> str:
    return path.relative_to(folder).as_posix()
