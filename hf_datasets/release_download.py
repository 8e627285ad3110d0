"""Download a release: every archive is checked before it is opened, every file once more against the manifest."""

from __future__ import annotations

import gzip
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from evaluator.files import sha256_file, write_atomic
from hf_datasets.archives import ArchiveError, read_tar
from hf_datasets.chunks import CHUNK_BYTES
from hf_datasets.folders import built_beside, locked
from hf_datasets.release_form import (
    RELEASE_NAME,
    Archive,
    Downloaded,
    Pinned,
    ReleaseError,
    ReleaseForm,
    Staged,
    TaskEntry,
    read_release_file,
)
from hf_datasets.release_source import Part, open_part
from tasks import canary
from tasks.manifest import MANIFEST_NAME, Manifest, ManifestError, load_manifest
from tasks.names import Release
from tasks.registry import task_digest, task_ids

MAX_FILES = 1_000_000
MAX_FORM_BYTES, MAX_PACKAGE_BYTES = 16 << 20, 64 << 20
PACKAGES = "packages"

Say = Callable[[str], None]


@dataclass(frozen=True)
class Fetched:
    """What a download did with one task: ``ready``, ``already``, or ``elsewhere`` with what has to be done by hand."""

    task: str
    state: str
    detail: str


def download_release(
    release: Release,
    source: str,
    data: Path,
    *,
    references: str | None = None,
    revision: str | None = None,
    tasks: tuple[str, ...] = (),
    form_sha256: str | None = None,
    say: Say = lambda _: None,
) -> list[Fetched]:
    """Download a release into ``data/<release>``; what is there and whole is not fetched again.

    Parameters
    ----------
    source
        A dataset repository ``ORG/NAME`` or a folder that holds the release.
    data : Path
        Root of the staged data.
    references
        Where the gated part lies, ``ORG/NAME@COMMIT`` for another commit than its newest; ``source`` with
        ``-references`` when None.
    revision
        Commit of the repository; its newest when None. The commit that was found is written down.
    tasks
        Only these; all when empty.
    form_sha256
        Digest that the release's ``release.json`` must have.

    Raises
    ------
    ReleaseError
        It cannot be had, is not a release, or something in it is not what its digest says.
    """
    references = references or f"{source.rstrip('/')}-references"
    target = data / release
    with locked(target / ".release.lock"), _scratch(target) as scratch:
        public = open_part(source, revision, scratch / "public")
        form = _form(public)
        if form_sha256 not in (None, sha256_file(public.file(RELEASE_NAME, MAX_FORM_BYTES))):
            raise ReleaseError(
                f"{source}: the release has changed; 'download-release' takes the new one into use"
            )
        if form.release is not release:
            raise ReleaseError(f"{source}: expected release {release}, found {form.release}")
        chosen = [_entry(form, task) for task in tasks] or list(form.tasks)
        gated = _Gated(references, public, scratch / "references")
        fetched = [_fetch(entry, public, gated, target, say) for entry in chosen]
        _write_down(target, form, public, gated, fetched)
    return fetched


def downloaded(release_root: Path) -> Downloaded | None:
    """What a data folder says about the release in it; None where nothing was downloaded.

    Raises
    ------
    ReleaseError
        Its ``release.json`` is damaged.
    """
    path = release_root / RELEASE_NAME
    return read_release_file(path, Downloaded) if path.is_file() else None


def revision_of(staged: Path) -> str | None:
    """The revision of the release that a staged task belongs to; None for data that belong to none.

    They belong to the release that was downloaded beside them if their manifest is the one that it lists. Where it
    lists none, because its data may not be passed on, the task's own files have to be the same.

    Raises
    ------
    ReleaseError
        The data folder's ``release.json`` is damaged.
    """
    found = downloaded(staged.parent)
    pinned = found.tasks.get(staged.name) if found else None
    manifest = staged / MANIFEST_NAME
    if found is None or pinned is None or not manifest.is_file():
        return None
    if pinned.manifest_sha256 is None:
        same = staged.name in task_ids() and task_digest(staged.name) == pinned.task_sha256
    else:
        same = sha256_file(manifest) == pinned.manifest_sha256
    return found.revision if same else None


def ensure_released(
    release: Release, task_id: str, data: Path, named: str | None, say: Say = lambda _: None
) -> Path:
    """The staged folder of a task, downloaded when it is missing.

    It comes from the release that ``data/<release>`` was downloaded from before, at the same commit, or from the one
    that is ``named``: ``ORG/NAME``, ``ORG/NAME@COMMIT`` or a folder.

    Raises
    ------
    ReleaseError
        No release is named, it has not got the task's data, or it cannot be had.
    """
    staged = data / release / task_id
    if staged.exists():
        return staged
    before = downloaded(data / release)
    if before is not None:
        pinned = None if before.revision.startswith("sha256:") else before.revision
        source, revision, digest = before.source, pinned, before.form_sha256
        at = f"@{before.references_revision}" if before.references_revision else ""
        references: str | None = f"{before.references}{at}"
    elif named:
        source, _, wanted = named.partition("@")
        references, revision, digest = None, wanted or None, None
    else:
        raise ReleaseError(
            f"no staged data: expected {staged}, and no {release} release is named; stage the task, or run "
            f"'python -m hf_datasets download-release {release} --from REPO --data {data}', or set "
            f"{source_variable(release)}"
        )
    (fetched,) = download_release(
        release,
        source,
        data,
        references=references,
        revision=revision,
        tasks=(task_id,),
        form_sha256=digest,
        say=say,
    )
    if fetched.state == "elsewhere":
        raise ReleaseError(f"no staged data: expected {staged}; {fetched.detail}")
    return staged


def source_variable(release: Release) -> str:
    """The environment variable that names where a release lies."""
    return f"AUTOMEDBENCH_{release.upper()}_RELEASE"


# --- one task ---


@dataclass
class _Gated:
    """The gated part, opened when the first task needs it: without access the packages can still be had."""

    name: str
    public: Part
    scratch: Path
    part: Part | None = None

    def opened(self) -> Part:
        if self.part is None:
            name, _, revision = self.name.partition("@")
            part = open_part(name, revision or None, self.scratch)
            theirs, ours = (
                sha256_file(one.file(RELEASE_NAME, MAX_FORM_BYTES)) for one in (part, self.public)
            )
            if theirs != ours:
                raise ReleaseError(
                    f"{self.name}: holds the references of another version of the release than {self.public.name}"
                )
            self.part = part
        return self.part


def _fetch(entry: TaskEntry, public: Part, gated: _Gated, target: Path, say: Say) -> Fetched:
    _unpack_package(entry, public, target / PACKAGES / entry.id)
    if entry.data is None:
        terms = f"its data may not be passed on ({entry.redistribution}, {entry.license})"
        return Fetched(entry.id, "elsewhere", f"{terms}; stage them from the upstream's own: {entry.how}")
    staged = target / entry.id
    with locked(target / f".{entry.id}.lock"):
        if _stands(staged, entry.data):
            return Fetched(entry.id, "already", f"{entry.data.cases} cases in {staged}")
        if staged.exists():
            raise ReleaseError(
                f"{staged}: holds other data than the release; move them away and download again"
            )
        say(f"{entry.id}: {(entry.data.inputs.bytes + entry.data.references.bytes) // 1_000_000} MB")
        with built_beside(staged) as folder:
            for part, archive in ((public, entry.data.inputs), (gated.opened(), entry.data.references)):
                _unpack(part, archive, folder)
            _require_manifest(folder, entry)
    return Fetched(entry.id, "ready", f"{entry.data.cases} cases in {staged}")


def _unpack_package(entry: TaskEntry, public: Part, folder: Path) -> None:
    marker = folder / ".sha256"
    if marker.is_file() and marker.read_text() == entry.package.sha256:
        return
    with built_beside(folder, flush=False) as partial:
        _unpack(public, entry.package, partial)
        (partial / ".sha256").write_text(entry.package.sha256)


def _unpack(part: Part, archive: Archive, folder: Path) -> None:
    """Check an archive against its digest, then unpack it without trusting it."""
    path = part.file(archive.path, archive.bytes)
    if path.stat().st_size != archive.bytes or sha256_file(path) != archive.sha256:
        part.forget(archive.path)
        raise ReleaseError(
            f"{part.name}: {archive.path} is not the file that {RELEASE_NAME} lists; download it again"
        )
    most = MAX_PACKAGE_BYTES if path.suffix == ".gz" else archive.bytes
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as raw:
        try:
            for name, content, _ in read_tar(raw, most_files=MAX_FILES, most_bytes=most):
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as out:
                    shutil.copyfileobj(content, out, CHUNK_BYTES)
        except ArchiveError as error:
            raise ReleaseError(f"{part.name}: {archive.path} {error}") from None
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise ReleaseError(f"{part.name}: {archive.path} has a file where it has a folder") from None
    part.forget(archive.path)


def _require_manifest(folder: Path, entry: TaskEntry) -> None:
    """Refuse data that are not, file by file, what the release's manifest lists."""
    assert entry.data is not None
    path = folder / MANIFEST_NAME
    if not path.is_file() or sha256_file(path) != entry.data.manifest_sha256:
        raise ReleaseError(f"{entry.id}: its manifest is not the one that {RELEASE_NAME} lists")
    try:
        manifest = load_manifest(folder)
    except ManifestError as error:
        raise ReleaseError(f"{entry.id}: {error}") from None
    listed = dict(_listed(manifest))
    (folder / canary.RELEASE_FILE).unlink(missing_ok=True)
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {
        MANIFEST_NAME
    }
    if found != listed.keys():
        strange = sorted(found ^ listed.keys())[0]
        raise ReleaseError(f"{entry.id}: {strange} is in the archives or in the manifest, not in both")
    for name, digest in listed.items():
        if sha256_file(folder / name) != digest:
            raise ReleaseError(f"{entry.id}: {name} is not the file that its manifest lists")


def _listed(manifest: Manifest) -> Iterator[tuple[str, str]]:
    for case in manifest.cases:
        for side, entries in (("public", case.public), ("private", case.private)):
            yield from ((f"{side}/{entry.path}", entry.sha256) for entry in entries)


def _stands(staged: Path, data: Staged) -> bool:
    manifest = staged / MANIFEST_NAME
    return manifest.is_file() and sha256_file(manifest) == data.manifest_sha256


# --- the release as a whole ---


def _form(public: Part) -> ReleaseForm:
    return read_release_file(public.file(RELEASE_NAME, MAX_FORM_BYTES), ReleaseForm)


def _entry(form: ReleaseForm, task: str) -> TaskEntry:
    entry = form.entry(task)
    if entry is None:
        names = ", ".join(entry.id for entry in form.tasks)
        raise ReleaseError(f"release {form.release} has no task {task!r}; it has {names}")
    return entry


def _write_down(target: Path, form: ReleaseForm, public: Part, gated: _Gated, fetched: list[Fetched]) -> None:
    before = downloaded(target)
    digest = sha256_file(public.file(RELEASE_NAME, MAX_FORM_BYTES))
    pinned: dict[str, Pinned] = {}
    kept: str | None = None
    if before is not None and before.form_sha256 == digest:
        pinned, kept = dict(before.tasks), before.references_revision
    for entry in form.tasks:
        if entry.id in {one.task for one in fetched}:
            known = entry.data.manifest_sha256 if entry.data else entry.manifest_sha256
            pinned[entry.id] = Pinned(task_sha256=entry.task_sha256, manifest_sha256=known)
    note = Downloaded(
        release=form.release,
        source=public.name,
        references=gated.name.partition("@")[0],
        revision=public.revision or f"sha256:{digest}",
        references_revision=gated.part.revision if gated.part else kept,
        form_sha256=digest,
        tasks=pinned,
    )
    write_atomic(target / RELEASE_NAME, note.model_dump_json(indent=1) + "\n")


@contextmanager
def _scratch(target: Path) -> Iterator[Path]:
    """A folder on the same disk as the data; gone afterwards, also what a killed download left."""
    for left in target.glob(".download-*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=".download-", dir=target) as folder:
        yield Path(folder)
