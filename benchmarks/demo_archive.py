"""Pack finished runs for the Space's demonstration: ``python -m benchmarks.demo_archive RUNS space/demo.zip``.

Its runs are real: the scripted baseline agent on one phantom task of every track, run by the runner. Of each run
it holds record, report, judgement, cell, trace, plan and pictures; of Lite-tier runs also what was handed in for the
first few cases.
"""

from __future__ import annotations

import argparse
import zipfile
from collections.abc import Iterator
from pathlib import Path

from hf_datasets.run_folders import finished, read_record
from tasks.names import Tier

TASKS = ("kidney-seg-task", "ldct-denoising-task", "vqa-rad-task", "iu-xray-report-task", "bccd-det-task",
         "braintumor-cls-task", "synthrad2025-mrct-task")  # fmt: skip
_FILES = ("record.json", "report.json", "judgement.json", "cell.json", "trace.jsonl")
_CASES = 2
_TIME = (1980, 1, 1, 0, 0, 0)


def pack(runs: Path, target: Path) -> int:
    """Write the archive, the same bytes for the same runs; how many there are."""
    count = 0
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for folder in sorted(finished(runs)):
            record, _ = read_record(folder)
            if record.task not in TASKS:
                continue
            count += 1
            for path in _chosen(folder, outputs=record.tier is Tier.LITE):
                entry = zipfile.ZipInfo(path.relative_to(runs).as_posix(), _TIME)
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, path.read_bytes())
    return count


def _chosen(folder: Path, *, outputs: bool) -> Iterator[Path]:
    yield from (folder / name for name in _FILES)
    plan = folder / "submission" / ".process"
    yield from sorted(path for path in plan.glob("*") if path.is_file())
    yield from sorted(folder.glob("previews/*.webp"))
    if outputs:
        yield folder / "submission" / "manifest.json"
        cases = sorted(path for path in (folder / "submission").glob("case-*") if path.is_dir())[:_CASES]
        yield from (path for case in cases for path in sorted(case.iterdir()))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.demo_archive", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("runs", type=Path)
    parser.add_argument("target", type=Path)
    chosen = parser.parse_args()
    print(f"{pack(chosen.runs, chosen.target)} runs, {chosen.target.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
