"""Build the Lite and the Full release: task packages, and staged data where their terms let them out.

Full: 48 task packages, 96 cells, no data. Lite: seven tasks, one a track. Staged data go in for a task whose terms
allow it, its references into a part of their own, to lie in a gated repository; for another task the package says how
to get the same cases. The same input gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from evaluator.files import sha256_file, write_atomic
from hf_datasets.archives import Member, write_tar, write_tar_gz
from hf_datasets.folders import built_beside, locked
from hf_datasets.packages import TIERS, package_members
from hf_datasets.release_card import card
from hf_datasets.release_form import RELEASE_NAME, Archive, ReleaseError, ReleaseForm, Staged, TaskEntry
from tasks import canary
from tasks.manifest import MANIFEST_NAME, FileEntry, Manifest, ManifestError, load_manifest
from tasks.names import Redistribution, Release, Tier
from tasks.registry import all_tasks, load_task, task_digest
from tasks.schema import Task

LITE_CASES: dict[str, int] = {
    "tsg-multiorgan-seg-task": 40,
    "grazpedwri-det-task": 100,
    "medxpertqa-mm-task": 200,
    "patchcamelyon-cls-task": 100,
    "lidc-idri-denoising-task": 20,
    "msd-pancreas-ctsr-task": 20,
    "iu-xray-report-task": 100,
}
"""The Lite release: one task a track, and how many cases are staged of it. Why these: docs/releases.md."""


def build_release(release: Release, data: Path, out: Path, references: Path) -> ReleaseForm:
    """Build both parts of a release; each folder appears whole or not at all.

    Parameters
    ----------
    data : Path
        Root of the staged data. The Lite release needs ``data/lite/<task>`` of every task that goes in with data; of
        the Full release only the digests of manifests are taken, where ``data/full/<task>`` is staged.
    out : Path
        The public part: packages, inputs, ``release.json``, card.
    references : Path
        The gated part: references and manifests. Not made for the Full release.

    Raises
    ------
    ReleaseError
        Data are not staged, damaged, or may not be passed on; a target folder holds something else.
    """
    if release is Release.PHANTOM:
        raise ReleaseError("phantoms are drawn where they are needed; releases are lite and full")
    targets = [out] if release is Release.FULL else [out, references]
    for target in targets:
        _require_ours(target)
    if out.resolve() == references.resolve():
        raise ReleaseError(
            "references go into a folder of their own, so that they can lie in a gated repository"
        )
    tasks = all_tasks() if release is Release.FULL else [load_task(name) for name in sorted(LITE_CASES)]
    with locked(out.parent / f".{out.name}.lock"), built_beside(out) as public:
        if release is Release.FULL:
            return _write(public, None, release, data, tasks)
        with built_beside(references) as private:
            return _write(public, private, release, data, tasks)


def _write(
    public: Path, private: Path | None, release: Release, data: Path, tasks: Iterable[Task]
) -> ReleaseForm:
    entries = tuple(_entry(task, release, data / release / task.id, public, private) for task in tasks)
    form = ReleaseForm(
        release=release,
        canary=canary.GUID,
        cells=sum(len(entry.tiers) for entry in entries),
        tasks=entries,
    )
    for part, gated in ((public, False), (private, True)):
        if part is not None:
            write_atomic(part / RELEASE_NAME, form.model_dump_json(indent=1) + "\n")
            write_atomic(part / canary.RELEASE_FILE, canary.NOTICE + "\n")
            write_atomic(part / "README.md", card(form, gated=gated))
    return form


def _entry(task: Task, release: Release, staged: Path, public: Path, private: Path | None) -> TaskEntry:
    manifest = _manifest(task, release, staged)
    if private is not None and task.source.redistribution is Redistribution.ALLOWED:
        if manifest is None:
            raise ReleaseError(
                f"{staged}: expected staged data, found none; run '{_how(task, release)}' first"
            )
        data = _staged(task, staged, manifest, public, private)
    else:
        data = None
    digest = sha256_file(staged / MANIFEST_NAME) if manifest else None
    members = package_members(
        task,
        release,
        cases=len(manifest.cases) if manifest else LITE_CASES.get(task.id),
        manifest_sha256=digest,
    )
    return TaskEntry(
        id=task.id,
        track=task.track,
        tiers=TIERS if release is Release.FULL else (Tier.LITE,),
        task_sha256=task_digest(task.id),
        license=task.source.license,
        redistribution=task.source.redistribution,
        package=_archived(public, f"tasks/{task.track}/{task.id}.tar.gz", members),
        data=data,
        manifest_sha256=digest,
        how=_how(task, release),
    )


def _manifest(task: Task, release: Release, staged: Path) -> Manifest | None:
    """The manifest of what is staged for the release, None where nothing is."""
    if not staged.exists():
        return None
    try:
        manifest = load_manifest(staged)
    except ManifestError as error:
        raise ReleaseError(str(error)) from None
    if (manifest.task, manifest.release) != (task.id, release):
        raise ReleaseError(
            f"{staged}: holds {manifest.task} of release {manifest.release}, not {task.id} of {release}"
        )
    return manifest


def _staged(task: Task, staged: Path, manifest: Manifest, public: Path, private: Path) -> Staged:
    if manifest.redistribution is not Redistribution.ALLOWED:
        raise ReleaseError(
            f"{staged}: was staged under '{manifest.redistribution}'; stage it again under the task's terms of now"
        )
    inputs = [entry for case in manifest.cases for entry in case.public]
    answers = [entry for case in manifest.cases for entry in case.private]
    notice: Member = (canary.RELEASE_FILE, (canary.NOTICE + "\n").encode())
    return Staged(
        manifest_sha256=sha256_file(staged / MANIFEST_NAME),
        cases=len(manifest.cases),
        inputs=_archived(public, f"data/{task.id}.tar", [notice, *_members(staged, "public", inputs)]),
        references=_archived(
            private,
            f"references/{task.id}.tar",
            [notice, (MANIFEST_NAME, staged / MANIFEST_NAME), *_members(staged, "private", answers)],
        ),
    )


def _members(staged: Path, side: str, entries: Iterable[FileEntry]) -> list[Member]:
    """Files of one side, each looked at once more before it is passed on."""
    members: list[Member] = []
    for entry in entries:
        path = staged / side / entry.path
        if not path.is_file() or sha256_file(path) != entry.sha256:
            raise ReleaseError(f"{path}: is not the file that the manifest lists; stage the task again")
        members.append((f"{side}/{entry.path}", path))
    return members


def _archived(part: Path, name: str, members: list[Member]) -> Archive:
    path = part / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if name.endswith(".gz"):
        write_tar_gz(members, path)
    else:  # images and volumes are compressed already
        with path.open("wb") as out:
            write_tar(members, out)
    return Archive(path=name, sha256=sha256_file(path), bytes=path.stat().st_size)


def _how(task: Task, release: Release) -> str:
    """The command that stages the cases of a release from the upstream's own data."""
    limit = f" --limit {LITE_CASES[task.id]}" if release is Release.LITE else ""
    return (
        f"python -m hf_datasets stage {task.id} --source RAW --out data --release {release}{limit} --seed 0"
    )


def _require_ours(target: Path) -> None:
    if target.exists() and not (target / RELEASE_NAME).is_file() and any(target.iterdir()):
        raise ReleaseError(f"{target}: expected a release or nothing, found other files; move them away")
