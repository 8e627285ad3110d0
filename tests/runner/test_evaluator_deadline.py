"""The evaluator's sandbox outlives what its cases may use together."""

from __future__ import annotations

from evaluator.score import budget_for
from runner.evaluate import LEAST_SECONDS, deadline_for
from tasks.manifest import Case, FileEntry, Manifest


def manifest(cases: int, shape: tuple[int, ...]) -> Manifest:
    file = FileEntry(path="ct.nii.gz", sha256="0" * 64, bytes=1, shape=shape)
    return Manifest(
        task="kidney-seg-task", release="full", seed=0, source="x", license="x", redistribution="none", generator="x",
        cases=tuple(Case(id=f"case-{n}", public=(file,), private=(), origin="x") for n in range(cases)),
    )  # fmt: skip


def test_few_small_cases_have_the_least():
    assert deadline_for(manifest(5, (10, 10, 10))) == LEAST_SECONDS


def test_many_large_volumes_have_what_they_may_use():
    large = manifest(300, (512, 512, 600))
    assert deadline_for(large) == 300 * budget_for(large).cpu_seconds
    assert deadline_for(large) > LEAST_SECONDS
