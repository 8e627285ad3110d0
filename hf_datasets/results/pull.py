"""Results as a local folder, from the Hub or, without a network, from what was pulled last."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from hf_datasets.folders import locked, remove
from hf_datasets.hub import Head, Hub, HubError, NotReached, git_oid
from hf_datasets.results.layout import (
    CASES_PARTS,
    PACKED,
    README,
    RECORDS,
    RUNS_PARTS,
    STATUS,
    is_packed,
    is_stray_record,
)
from hf_datasets.results.signatures import keep_signed, record_files
from hf_datasets.results.tables import read_pack, shortened

REVISION = "revision.txt"
"""Of a pulled folder: the commit it was pulled at."""

_TABLES = (README, f"{RUNS_PARTS}/*", f"{CASES_PARTS}/*", f"{PACKED}/*", f"{STATUS}/*")
_FILES = ("previews/*", "traces/*", "details/*", "outputs/*", "submissions/*")


@dataclass(frozen=True)
class Pulled:
    """What was pulled. ``problems`` has a line for each thing that could not be had whole."""

    folder: Path
    sha: str
    records: int
    problems: tuple[str, ...]
    from_cache: bool


def pull(
    hub: Hub,
    out: Path,
    *,
    revision: str | None = None,
    files: bool = True,
    allowed_signers: Path | None = None,
    say: Callable[[str], object] = lambda _: None,
) -> Pulled:
    """Make ``out`` the folder of results at a revision: records and tables and, with ``files``, all else.

    Records and signatures come packed, thousands of them in a few requests; each is held against the git oid of its own
    file, and fetched singly where it differs or is not packed. Without a network the cache of an earlier pull is used.

    With ``allowed_signers`` (OpenSSH's file) a record that none of them signed is named and left out, and with it its
    rows.

    Raises
    ------
    NoRepository, NotReached, HubError
        Also where there is neither a network nor a cached copy.
    FileExistsError
        ``out`` holds something that was not pulled.
    """
    if out.exists() and not (out / REVISION).is_file() and any(out.iterdir()):
        raise FileExistsError(f"{out} holds other things; give a new folder, or one that was pulled before")
    patterns = [*_TABLES, *(_FILES if files else ())]
    try:
        cached = hub.snapshot(patterns, revision)
        head: Head | None = hub.head([RECORDS], cached.name)
    except NotReached as reason:
        head, cached = None, hub.snapshot(patterns, revision, offline=True)
        say(f"{reason}; going on with what was pulled before")
    with locked(out.parent / f".{out.name}.lock"):
        wanted = {pattern.split("/")[0] for pattern in patterns}
        return _laid_out(hub, head, cached, out, wanted, allowed_signers)


def _laid_out(
    hub: Hub, head: Head | None, cached: Path, out: Path, wanted: set[str], allowed_signers: Path | None
) -> Pulled:
    """Build the folder beside ``out`` and let it take its place."""
    partial = out.with_name(f".{out.name}.partial")
    remove(partial)
    partial.mkdir(parents=True)
    for file in cached.rglob("*"):
        name = file.relative_to(cached)
        if name.parts[0] in wanted and file.is_file():
            (partial / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, partial / name)
    problems: list[str] = []
    for path, content in _packed(hub, head, partial / PACKED, problems):
        (partial / path).parent.mkdir(parents=True, exist_ok=True)
        (partial / path).write_bytes(content)
    if allowed_signers:
        problems += keep_signed(partial, allowed_signers)
    records = len(record_files(partial))
    (partial / REVISION).write_text(f"{cached.name}\n")
    remove(out)
    partial.rename(out)
    return Pulled(out, cached.name, records, tuple(problems), from_cache=head is None)


def _packed(hub: Hub, head: Head | None, packs: Path, problems: list[str]) -> Iterator[tuple[str, bytes]]:
    """Path and bytes of every record and signature.

    The packs are believed only where git's oid, or offline the digest, agrees.
    """
    missing = {path: oid for path, oid in head.files.items() if is_packed(path)} if head else {}
    for pack in sorted(packs.glob("*.parquet")):
        rows, fault = read_pack(pack, f"{PACKED}/{pack.name}")
        problems += fault
        for path, digest, content in rows:
            if not is_packed(path):
                problems.append(f"{PACKED}/{pack.name}: {shortened(path)} is no path of a record; left out")
            elif head is None and sha256(content).hexdigest() == digest:
                yield path, content
            elif missing.get(path) == git_oid(content):
                del missing[path]
                yield path, content
            elif path in missing:
                problems.append(f"{PACKED}/{pack.name}: {path} differs from its own file; that one is taken")
    strays = [path for path in (head.files if head else ()) if is_stray_record(path)]
    problems += [f"{shortened(path)} is no name of a record; left out" for path in sorted(strays)]
    for path in sorted(missing):
        try:
            yield path, hub.read(path, head.sha if head else "")
        except HubError as error:
            problems.append(f"{path}: {error}")
