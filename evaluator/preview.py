"""Small pictures of a submission, case by case, each drawn in a child process as scoring does."""

from __future__ import annotations

from pathlib import Path

from evaluator.files import write_atomic
from evaluator.isolation import map_isolated
from evaluator.score import budget_for, case_files
from evaluator.tracks import track_of
from evaluator.tracks.base import CaseFault, CaseFiles
from tasks.manifest import Manifest
from tasks.schema import Redistribution, Release, Task

DRAWN = ("mask", "image", "boxes")
MAX_CASES = 8


def write_previews(
    task: Task,
    manifest: Manifest,
    submission: Path,
    references: Path,
    public: Path | None,
    out: Path,
    jobs: int | None = None,
) -> None:
    """Write ``<case>.webp`` for the first few cases of the manifest that can be drawn.

    References are shown where `may_show_references`; elsewhere a case is drawn without being told where they lie.
    """
    if public is None or task.output.kind not in DRAWN:
        return
    track = track_of(task)

    def draw(case: CaseFiles) -> str:
        try:
            picture = track.preview(case, track.check(case))
        except CaseFault:
            return ""
        return picture.hex() if picture else ""

    shown = references if may_show_references(task, manifest) else None
    cases = case_files(track, manifest, submission, shown, public)[:MAX_CASES]
    out.mkdir(parents=True, exist_ok=True)
    pictures = map_isolated(draw, cases, budget_for(manifest), jobs or 1)
    for case, answer in zip(cases, pictures, strict=True):
        if isinstance(answer, str) and answer:
            write_atomic(out / f"{case.id}.webp", bytes.fromhex(answer))


def may_show_references(task: Task, manifest: Manifest) -> bool:
    """Whether the data's terms allow it: those they were staged under and, but for phantoms, those of the task now."""
    allowed = Redistribution.ALLOWED
    ours = manifest.release is Release.PHANTOM
    return manifest.redistribution is allowed and (ours or task.source.redistribution is allowed)
