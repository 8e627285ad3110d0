"""Publish finished runs: each once, whole or not at all, whatever else happens meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path

from hf_datasets.hub import Change, Head, Hub, git_oid
from hf_datasets.publish import Publication, PublishedFile
from hf_datasets.records import RecordError
from hf_datasets.results.corrections import Truths, correction_fault
from hf_datasets.results.layout import (
    DATA,
    RECORDS,
    folder_counts,
    own_paths,
    record_path,
    run_of_record,
)
from hf_datasets.results.packing import Files, add_card, add_packs, add_rows, new_rows, rewrite_parts
from hf_datasets.results.signatures import (
    Late,
    packed_signature,
    run_of_signature,
    signature_of,
    signatures_change,
)
from hf_datasets.run_folders import finished, read_record
from hf_datasets.signing import SUFFIX

FOLDERS = (RECORDS, DATA)
"""Of the repository, what has to be known before something is added."""
MAX_RUNS, MAX_FILES, MAX_BYTES = 1000, 1000, 64 << 20
"""Of one commit; the Hub's own client sends no more files at once."""


@dataclass
class Outcome:
    """What became of the runs of a folder.

    ``published`` and ``present`` map run ids to the SHA-256 of their records; ``refused`` and ``blocked`` map run ids
    to the reason; ``unreadable`` has a line for each folder that is no sound run. ``signed`` has the runs that were
    there already and whose signature was added.
    """

    repo: str
    revision: str | None = None
    published: dict[str, str] = field(default_factory=dict)
    present: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    blocked: dict[str, str] = field(default_factory=dict)
    withheld: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)
    signed: list[str] = field(default_factory=list)
    commits: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether every run of the folder is there."""
        return not (self.refused or self.blocked or self.unreadable)


@dataclass(frozen=True)
class Ready:
    """A run that may be published."""

    publication: Publication
    sha256: str
    oid: str
    signature: bytes | None = None

    @property
    def run_id(self) -> str:
        return self.publication.record.run_id


Publish = Callable[[Path], Publication]
"""Makes the publication of a run folder, or raises `RecordError`."""

Watch = Callable[[Outcome, int], object]
"""Called with what is done so far and how many runs were looked at."""


def push(
    runs: Path,
    hub: Hub,
    publish: Publish,
    *,
    revision: str | None = None,
    extra: Sequence[PublishedFile] = (),
    watch: Watch = lambda *_: None,
) -> Outcome:
    """Publish the finished runs below a folder that are not there yet.

    A commit holds some runs with all that belongs to them: records, signatures, rows, files and the card. Killed at any
    moment, the same call again publishes what is missing. Runs that are there get the signature they lack.

    Parameters
    ----------
    publish
        Says what of a run folder may leave: `hf_datasets.publish.publication` with a redactor.
    revision
        Branch or pull request (``refs/pr/N``) to commit to; main by default.
    extra
        More files for the last commit, such as the manifest of a submission.

    Raises
    ------
    HubError
        The Hub refuses or cannot be reached; what was committed before stays.
    """
    outcome = Outcome(hub.repo, revision)
    head = hub.head(FOLDERS, revision)
    late = Late(head)
    for batch in batches(ready(runs, late, publish, outcome, watch)):
        outcome.commits.append(_commit(hub, batch, outcome, revision))
        watch(outcome, 0)
    for group in late.groups(MAX_FILES):
        build = partial(signatures_change, signatures=group)
        outcome.commits.append(hub.commit(build, FOLDERS, revision))
        outcome.signed += map(run_of_signature, group)
    if extra:
        outcome.commits.append(_commit_files(hub, extra, revision))
    return outcome


def ready(
    runs: Path, late: Late, publish: Publish, outcome: Outcome, watch: Watch = lambda *_: None
) -> Iterator[Ready]:
    """The runs below a folder that may be published and are not there yet.

    The others go into ``outcome``, and into ``late`` the signatures that those lack which are there.
    """
    seen: set[str] = set()
    for folder in finished(runs):
        watch(outcome, 1)
        try:
            record, content = read_record(folder)
            # A look at the record saves the work on a run that is there.
            made = None if late.is_there(content) else publish(folder)
        except RecordError as error:
            outcome.unreadable.append(str(error))
            continue
        if record.run_id in seen:
            outcome.unreadable.append(
                f"{folder}: {record.run_id} is there already; this copy is not published"
            )
            continue
        seen.add(record.run_id)
        published = made.record_bytes if made else content
        if made is None or late.is_there(published):
            outcome.present[record.run_id] = sha256(published).hexdigest()
            outcome.withheld[record.run_id] = late.look(folder, content, published)
        elif fault := _fault(made):
            outcome.blocked[record.run_id] = fault
        else:
            signature, kept_here = signature_of(folder, content, published)
            outcome.withheld[record.run_id] = (*made.withheld, *kept_here)
            yield Ready(made, sha256(published).hexdigest(), git_oid(published), signature)


def batches(runs: Iterable[Ready]) -> Iterator[list[Ready]]:
    """Runs in groups that one commit takes."""
    group: list[Ready] = []
    files = size = 0
    for run in runs:
        more_files = 1 + len(run.publication.files) + (run.signature is not None)
        more_bytes = _size(run)
        full = len(group) == MAX_RUNS or files + more_files > MAX_FILES or size + more_bytes > MAX_BYTES
        if group and full:
            yield group
            group, files, size = [], 0, 0
        group.append(run)
        files, size = files + more_files, size + more_bytes
    if group:
        yield group


def _commit(hub: Hub, batch: list[Ready], outcome: Outcome, revision: str | None) -> str:
    """One commit with a group of runs, less those that are there by now or must be refused."""
    refused: dict[str, str] = {}

    def build(head: Head) -> Change | None:
        refused.clear()
        return change_for(hub, head, batch, refused, with_card=revision is None)

    commit = hub.commit(build, FOLDERS, revision)
    outcome.refused |= refused
    outcome.published |= {run.run_id: run.sha256 for run in batch if run.run_id not in refused}
    return commit


def change_for(
    hub: Hub, head: Head, batch: Sequence[Ready], refused: dict[str, str], *, with_card: bool = True
) -> Change | None:
    """What publishes a group of runs on top of a head; None where nothing is left to do.

    A pull request leaves the card alone (``with_card``), so that two of them can be merged; the next push counts.
    """
    there: dict[str, set[str]] = {}
    for path, oid in head.files.items():
        if run_id := run_of_record(path):
            there.setdefault(run_id, set()).add(oid)
    truths = Truths(hub, head)
    chosen: list[Ready] = []
    drop: set[str] = set()
    for run in batch:
        oids = there.get(run.run_id, set())
        if run.oid in oids:
            continue
        if oids:
            others = truths.of(run.run_id)
            if fault := correction_fault(run.publication.record, others):
                refused[run.run_id] = fault
                continue
            drop |= {other.sha256 for other in others}
        chosen.append(run)
    return _change(hub, head, chosen, drop, there, with_card=with_card) if chosen else None


def _change(
    hub: Hub,
    head: Head,
    runs: Sequence[Ready],
    drop: set[str],
    there: dict[str, set[str]],
    *,
    with_card: bool,
) -> Change:
    files, packed = Files(), []
    taken = folder_counts(filter(run_of_record, head.files))
    for run in runs:
        made = run.publication
        path = record_path(made.record, run.sha256, correction=run.run_id in there, taken=taken)
        taken[path.rpartition("/")[0]] = taken.get(path.rpartition("/")[0], 0) + 1
        files.write[path] = made.record_bytes
        packed.append((path, run.run_id, run.sha256, made.record_bytes))
        if run.signature is not None:
            files.write[path + SUFFIX] = run.signature
            packed.append(packed_signature(path + SUFFIX, run.signature))
        files.write |= {file.path_in_repo: file.content for file in made.files}
    add_rows(files, *new_rows([(run.publication, run.sha256) for run in runs]))
    add_packs(files, packed)
    if drop:
        rewrite_parts(files, hub, head, drop, {})
    if with_card or not head.files.get("README.md"):
        add_card(files, hub, head)
    title = f"Publish {len(runs)} run{'s' if len(runs) > 1 else ''}"
    return Change(title, files.write, frozenset(files.delete))


def _commit_files(hub: Hub, extra: Sequence[PublishedFile], revision: str | None) -> str:
    write = {file.path_in_repo: file.content for file in extra}
    wanted = {path: git_oid(_content(content)) for path, content in write.items()}
    folders = {path.split("/")[0] for path in write}

    def build(head: Head) -> Change | None:
        if all(head.files.get(path) == oid for path, oid in wanted.items()):
            return None
        return Change(f"Add {', '.join(write)}", write)

    return hub.commit(build, folders, revision)


def _content(content: bytes | Path) -> bytes:
    return content if isinstance(content, bytes) else content.read_bytes()


def _fault(made: Publication) -> str | None:
    """Why a publication stays here: what was found in it, or a path where only other runs' files may lie."""
    if made.findings:
        return "; ".join(map(str, made.findings))
    run_id = made.record.run_id
    for file in made.files:
        path = file.path_in_repo
        if not path.startswith(own_paths(run_id)) or ".." in path.split("/"):
            return f"{path}: lies outside of what belongs to this run"
    return None


def _size(run: Ready) -> int:
    files = run.publication.files
    return len(run.publication.record_bytes) + sum(
        len(file.content) if isinstance(file.content, bytes) else file.content.stat().st_size
        for file in files
    )
